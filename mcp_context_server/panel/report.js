// The report of `inspect`: everything it shows stands in the page's own data.

const report = JSON.parse(document.getElementById("data").textContent);

function masthead({ file, format, status }) {
  const name = file.slice(file.search(/[^/\\]*$/));
  const [from, to] = [report.growth[0]?.at, report.growth.at(-1)?.at].map(told.time);
  return h(
    "header",
    { class: "masthead" },
    h("h1", {}, name),
    h(
      "p",
      { class: "quiet" },
      [format, status.model, from && to ? `${from} – ${to}` : ""].filter(Boolean).join(" · "),
    ),
  );
}

function now({ status }) {
  return section(
    "How full the window is",
    { first: true },
    h(
      "div",
      { class: "headline" },
      h("span", { class: "figure" }, String(status.percent_used), h("small", {}, "%")),
      stateBadge(status.state),
      h(
        "span",
        { class: "quiet" },
        `${told.tokens(status.used_tokens)} of ${told.tokens(status.effective_window)} tokens at the end, from ${SOURCES[status.source] ?? status.source}`,
      ),
    ),
    gauge(status),
    h("p", { class: "advice", css: stateStyle(status.state) }, words(status.advice)),
    (status.notes ?? []).map((note) => h("p", { class: "note" }, words(note))),
  );
}

const SOURCES = {
  usage: "the reported usage",
  estimate: "an estimate",
  exact: "an exact count",
  nothing_known: "nothing yet",
};

function figures({ status, turns, responses, growth, costs, compactions }) {
  const sum = (name) => costs.reduce((total, cost) => total + cost[name], 0);
  const prompt = sum("fresh_tokens") + sum("read_tokens") + sum("written_tokens");
  const priced = costs.length > 0 && costs.every((cost) => cost.dollars);
  const paid = (name) => costs.reduce((total, cost) => total + cost.dollars[name], 0);
  const peak = Math.max(0, ...growth.map((point) => point.tokens));
  const facts = [
    ["Turns", told.tokens(turns), told.count(responses, "response")],
    [
      "Peak",
      growth.length ? told.short(peak) : "–",
      growth.length
        ? `${told.share(peak, status.effective_window)} of the window`
        : "no usage reported",
    ],
    ["Compactions", told.tokens(compactions.length), compactions.length ? "see below" : "none"],
  ];
  if (prompt)
    facts.push([
      "Cache hits",
      told.share(sum("read_tokens"), prompt),
      `of ${told.short(prompt)} tokens sent`,
    ]);
  if (priced)
    facts.push([
      "Cost",
      told.dollars(paid("total")),
      `${told.dollars(paid("uncached_input") + paid("output"))} without a cache`,
    ]);
  return section(
    "In figures",
    { first: true, id: "figures" },
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, value, more]) =>
        h("div", {}, h("dt", {}, name), h("dd", {}, value, h("small", {}, more))),
      ),
    ),
  );
}

function growth({ growth: points, status, responses }) {
  if (!points.length) {
    return section(
      "Growth",
      {},
      h(
        "p",
        { class: "empty" },
        `No usage was reported with the ${told.count(responses, "response")} of this conversation, so how it grew is not known.`,
      ),
    );
  }
  const drawn = points.map((point) => ({ ...point, cached: point.cached_tokens }));
  return section(
    "Growth",
    {
      lead: "The prompt at each response; the darker part came from the cache. Diamonds are compactions.",
    },
    growthChart(drawn, status, 290),
    asTable(
      "Growth as a table",
      ["turn", "tokens", "cached", "output", "compacted before", "at"],
      points.map((point) => [
        String(point.turn),
        told.tokens(point.tokens),
        told.tokens(point.cached_tokens),
        told.tokens(point.output_tokens),
        point.boundary ?? "",
        told.time(point.at),
      ]),
    ),
  );
}

function filling({ parts, status }) {
  if (!parts.length) return null;
  return section(
    "What fills the window",
    {
      lead: "By class, tool and file, at the end of the conversation. Open a field to look into it.",
    },
    treemap(parts),
    asTable(
      "The same as a table",
      ["class, tool, file", "tokens", "share"],
      parts.map((part) => [
        [kindName(part.kind), part.tool, part.file].filter(Boolean).join(" · "),
        told.tokens(part.tokens),
        told.share(part.tokens, status.used_tokens),
      ]),
    ),
  );
}

const FEW_TURNS = 3; // With fewer the turns say little, and each response is drawn.

function costs({ costs: turns, growth: points }) {
  if (!turns.length) return null;
  const priced = turns.every((turn) => turn.dollars),
    each = turns.length < FEW_TURNS && points.length > turns.length;
  const lead = priced
    ? "At list prices, without discounts or subscriptions."
    : "In tokens: the prices of this model are not known.";
  return section(
    `${priced ? "Cost" : "Tokens"} by ${each ? "response" : "turn"}`,
    { lead },
    costChart(each ? byResponse(turns, points) : turns, { each }),
    asTable(
      "Each turn in a table",
      [
        "turn",
        "responses",
        "cache read",
        "cache write",
        "input",
        "output",
        ...(priced ? ["dollars"] : []),
      ],
      turns.map((turn) => [
        String(turn.turn),
        String(turn.responses),
        told.tokens(turn.read_tokens),
        told.tokens(turn.written_tokens),
        told.tokens(turn.fresh_tokens),
        told.tokens(turn.output_tokens),
        ...(priced ? [turn.dollars.total.toFixed(4)] : []),
      ]),
    ),
  );
}

function largest({ status }) {
  if (!status.largest.length) return null;
  return section(
    "Largest results",
    { lead: "Of those that are still in the window." },
    barRows(status.largest, { total: status.used_tokens }),
  );
}

function shares({ by_tool: tools, by_file: files, status }) {
  const one = (title, rows) =>
    rows.length
      ? section(
          title,
          { half: tools.length > 0 && files.length > 0 },
          barRows(rows, { total: status.used_tokens }),
        )
      : null;
  return [
    one(
      "By tool",
      tools.map((row) => ({ tool: row.name, ...row })),
    ),
    one(
      "By file",
      files.map((row) => ({ file: row.name, ...row })),
    ),
  ];
}

function compactions({ compactions: cuts }) {
  if (!cuts.length) return null;
  const most = Math.max(1, ...cuts.map((cut) => cut.tokens_before ?? 0));
  return section(
    "Compactions, and what each lost",
    {
      lead: "Names (paths, identifiers) that the assistant used in its next 30 texts and calls, could only know from before, and had not been shown again: how many of them the shortened context still held.",
    },
    h(
      "ol",
      { class: "cuts" },
      cuts.map((cut) => compaction(cut, most)),
    ),
  );
}

function compaction(cut, most) {
  const bar = (tokens, kind) =>
    tokens === null || tokens === undefined
      ? null
      : h("i", { class: kind, "aria-hidden": "true", css: { width: `${(100 * tokens) / most}%` } });
  const kept = cut.needed - Math.round((1 - (cut.recall ?? 0)) * cut.needed);
  const more = cut.needed - kept - cut.lost.length;
  return h(
    "li",
    { class: "cut" },
    h(
      "p",
      { class: "when" },
      h("b", {}, `Turn ${cut.turn}`),
      [cut.trigger, told.time(cut.at)].filter(Boolean).join(" · "),
    ),
    h(
      "div",
      {},
      h(
        "div",
        { class: "shrink" },
        bar(cut.tokens_before, "before"),
        bar(cut.tokens_after ?? cut.next_prompt_tokens, "after"),
      ),
      h(
        "p",
        { class: "figures" },
        cut.tokens_before
          ? h(
              "span",
              {},
              `${told.tokens(cut.tokens_before)}${cut.tokens_after ? ` → ${told.tokens(cut.tokens_after)}` : ""} tokens`,
            )
          : null,
        cut.next_prompt_tokens
          ? h("span", {}, `${told.tokens(cut.next_prompt_tokens)} in the next prompt`)
          : null,
        h(
          "span",
          {},
          cut.recall === null || cut.recall === undefined
            ? "Nothing from before was needed again."
            : `Kept ${kept} of ${told.count(cut.needed, "name")} needed next (${Math.round(100 * cut.recall)} %)`,
        ),
      ),
      cut.lost.length
        ? h(
            "details",
            {},
            h("summary", {}, `The ${cut.needed - kept} it lost`),
            h(
              "ul",
              { class: "names" },
              cut.lost.map((name) => h("li", {}, name)),
              more > 0 ? h("li", {}, `and ${more} more`) : null,
            ),
          )
        : null,
    ),
  );
}

function edits({ status }) {
  const shown = (status.edits ?? []).filter((edit) => edit.type !== "compact");
  if (!shown.length) return null;
  return section(
    "Taken out of the view",
    { lead: "Besides compactions: what was cleared, by which stage, and how many tokens." },
    editList(shown),
  );
}

function unread({ unreadable }) {
  if (!unreadable.length) return null;
  return section(
    "Left out",
    { lead: "Places of the file that its format does not explain." },
    h(
      "ul",
      {},
      unreadable.map((place) => h("li", { class: "mono" }, `line ${place}`)),
    ),
  );
}

// On paper nothing can be opened, and what a compaction lost should be read there too.
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll(".cut details")) details.open = true;
});

document.body.prepend(
  masthead(report),
  h(
    "main",
    {},
    [now, figures, growth, filling, costs, shares, largest, compactions, edits, unread]
      .flatMap((draw) => draw(report))
      .filter(Boolean),
  ),
  h(
    "footer",
    { class: "colophon" },
    `Made by mcp-context-server${report.status.formula ? `. In use: ${report.status.formula.used}; window from ${report.status.formula.window_source}` : ""}. This file holds figures and names, no text of the conversation, and loads nothing.`,
  ),
);
