// Figures that need no axes: the gauge, rows with bars, the list of edits.

/** How full the window is and of what, against the thresholds. */
function gauge(status) {
  const full = Math.max(1, status.effective_window),
    used = status.used_tokens;
  const scale = 100 / Math.max(full, used);
  const kinds = sortedKinds(status.breakdown);
  const meter = h(
    "div",
    {
      class: "gauge",
      role: "meter",
      "aria-label": "Context window in use",
      "aria-valuemin": 0,
      "aria-valuemax": full,
      "aria-valuenow": Math.min(full, used),
      "aria-valuetext": `${told.tokens(used)} of ${told.tokens(full)} tokens, ${STATES[status.state]?.name ?? status.state}`,
    },
    h(
      "div",
      { class: "fill" },
      kinds.map(([kind, tokens]) =>
        h("i", {
          css: { ...kindStyle(kind), width: `calc(${tokens * scale}% - 2px)` },
          title: `${kindName(kind)}: ${told.tokens(tokens)}`,
        }),
      ),
    ),
    THRESHOLDS.map(([state]) =>
      h("span", {
        class: "tick",
        css: { ...stateStyle(state), left: `${Math.min(100, status.thresholds[state] * scale)}%` },
      }),
    ),
  );
  return h(
    "div",
    {},
    meter,
    h(
      "ul",
      { class: "keys", "aria-label": "Thresholds" },
      THRESHOLDS.map(([state, name]) =>
        h(
          "li",
          { css: stateStyle(state) },
          h("span", { class: "swatch line" }),
          `${name} `,
          h("b", {}, told.tokens(status.thresholds[state])),
        ),
      ),
    ),
    h(
      "ul",
      { class: "keys", "aria-label": "What fills the window" },
      kinds.map(([kind, tokens]) =>
        h(
          "li",
          { css: kindStyle(kind) },
          h("span", { class: "swatch" }),
          `${kindName(kind)} `,
          h("b", {}, told.short(tokens)),
          ` ${told.share(tokens, used)}`,
        ),
      ),
    ),
  );
}

function sortedKinds(breakdown) {
  return Object.entries(breakdown)
    .filter(([, tokens]) => tokens > 0)
    .sort((a, b) => b[1] - a[1]);
}

/** A name with its last part first to be read: the directories before it are dim. */
function nameOf(tool, file) {
  const parts = [];
  if (tool) parts.push(h("span", {}, tool, file ? " " : ""));
  if (file) {
    const at = file.lastIndexOf("/", file.length - 2) + 1;
    parts.push(
      h("span", {}, file.slice(at)),
      h("span", { class: "dim" }, at > 1 ? `  ${file.slice(0, at)}` : ""),
    );
  }
  return h("span", { class: "name", title: `${tool} ${file}`.trim() }, parts);
}

/** Rows of a name, a bar and a figure; `action` may add a control to each. */
function barRows(rows, { total, kind = "result", action } = {}) {
  const most = Math.max(1, ...rows.map((row) => row.tokens));
  return h(
    "ul",
    { class: "rows" },
    rows.map((row) =>
      h(
        "li",
        { class: action ? "row acts" : "row" },
        nameOf(row.tool ?? "", row.file ?? ""),
        h(
          "span",
          { class: "num" },
          told.tokens(row.tokens),
          h(
            "span",
            { class: "dim part" },
            total ? told.share(row.tokens, total) : (row.note ?? ""),
          ),
        ),
        action ? action(row) : null,
        h(
          "span",
          { class: "bar", "aria-hidden": "true" },
          h("i", {
            css: { ...kindStyle(row.kind ?? kind), width: `${(100 * row.tokens) / most}%` },
          }),
        ),
      ),
    ),
  );
}

const STAGES = {
  spill: "spilled",
  reread: "read again",
  outdated: "outdated",
  snip: "cleared",
  microcompact: "old results cleared",
  media: "media taken out",
};

/** Edits of the view, newest first: what it was, when, by what, and how many tokens. */
function editList(edits) {
  return h(
    "ol",
    { class: "edits" },
    [...edits].reverse().map((edit) => {
      const what =
        edit.type === "replace"
          ? (STAGES[edit.stage] ?? edit.stage ?? "replaced")
          : edit.type.replaceAll("_", " ");
      const count = edit.references?.length ?? 0;
      const [before, after] = [edit.tokens_before, edit.tokens_after];
      const figure = before
        ? `${told.tokens(before)}${after ? ` → ${told.tokens(after)}` : " before"}`
        : edit.tokens_freed > 0
          ? `−${told.tokens(edit.tokens_freed)}`
          : "";
      return h(
        "li",
        {},
        h("span", { class: "dim num" }, told.time(edit.at) || `#${edit.sequence}`),
        h(
          "span",
          {},
          what,
          h(
            "span",
            { class: "dim" },
            [
              edit.trigger ? ` · ${edit.trigger}` : "",
              count ? ` · ${told.count(count, "original")}` : "",
            ].join(""),
          ),
        ),
        h("span", { class: "num" }, figure),
      );
    }),
  );
}
