// The context panel: what the server knows of one conversation, kept up to date.

const POLL_MS = 3000;
const SLOWEST_POLL_MS = 30000;
const EDITS_SHOWN = 12;
const SESSIONS_LISTED = 100;

const slots = new Map();
const main = document.getElementById("main");
const live = document.getElementById("live");
const chooser = document.getElementById("session");

const transport =
  parent === window
    ? new PageTransport()
    : new AppTransport({
        "ui/notifications/tool-result": (params) =>
          openSession(params.structuredContent?.session_id),
        "ui/notifications/host-context-changed": ({ theme }) =>
          theme && (document.documentElement.dataset.theme = theme),
        "ui/resource-teardown": () => clearTimeout(timer),
      });

let sessionId = transport.isApp ? "" : decodeURIComponent(location.hash.slice(1));
let status = null,
  memory = null,
  seen = "",
  timer = 0,
  wait = POLL_MS;
let asked = null; // the result whose clearing is to be confirmed: { id, freed, why }
let said = null; // what was done last: { text, bad, snip }, `snip` the edit that can be undone
let isWhole = !transport.isApp;

// ── what is shown ────────────────────────────────────────────────────────────

/** Put what `build` makes of `data` into its place, if the data differ from what stands there. */
function put(name, data, build) {
  const key = JSON.stringify(data) ?? "null",
    slot = slots.get(name);
  if (slot?.key === key) return;
  const hadFocus = slot?.element.contains(document.activeElement)
    ? document.activeElement.dataset.key
    : undefined;
  const element = (data === null ? null : build(data)) ?? h("div", { hidden: true });
  if (slot) slot.element.replaceWith(element);
  else main.append(element);
  slots.set(name, { key, element });
  if (hadFocus) element.querySelector(`[data-key="${CSS.escape(hadFocus)}"]`)?.focus();
}

/** Fields of the status that its first section shows. */
const NOW = [
  "used_tokens",
  "effective_window",
  "thresholds",
  "state",
  "source",
  "breakdown",
  "advice",
  "percent_used",
  "notes",
  "breaker",
  "used_low",
  "used_high",
];

function show() {
  document.getElementById("subject").textContent = status
    ? [status.model, status.transcript ? "followed from the host's transcript" : ""]
        .filter(Boolean)
        .join(" · ")
    : "";
  put("said", said, saying);
  if (!status) return;
  const { used_tokens, effective_window, thresholds } = status;
  put("now", Object.fromEntries(NOW.map((name) => [name, status[name]])), nowSection);
  put("growth", { growth: status.growth ?? [], thresholds, effective_window }, growthSection);
  put(
    "largest",
    { largest: status.largest, used: used_tokens, asked, queued: status.queued ?? [] },
    largestSection,
  );
  put("more", isWhole ? null : true, () =>
    section(
      "Everything else",
      { first: true },
      h("button", { onclick: showWhole }, "Show tools, files, memory and history"),
    ),
  );
  const when = (data) => (isWhole ? data : null);
  put("tool", when({ rows: status.by_tool ?? [], used: used_tokens }), ({ rows, used }) =>
    rows.length
      ? section(
          "By tool",
          { half: true },
          barRows(
            rows.map((row) => ({ tool: row.name, ...row })),
            { total: used },
          ),
        )
      : null,
  );
  put("file", when({ rows: status.by_file ?? [], used: used_tokens }), ({ rows, used }) =>
    rows.length
      ? section(
          "By file",
          { half: true },
          barRows(
            rows.map((row) => ({ file: row.name, ...row })),
            { total: used },
          ),
        )
      : null,
  );
  put(
    "memory",
    when({ told: status.memory ?? {}, memory, half: Boolean(status.tools) }),
    memorySection,
  );
  put("tools", when(status.tools ?? null), toolsSection);
  put("edits", when({ edits: status.edits ?? [] }), editsSection);
  document.getElementById("foot").textContent = status.formula
    ? `In use: ${status.formula.used}. Window from ${status.formula.window_source}. Session ${status.session_id}, version ${status.version}.`
    : "";
}

function showWhole() {
  isWhole = true;
  show();
}

function saying({ text, bad, snip }) {
  const undoable = snip !== undefined && snip === newestSnip(status);
  return h(
    "section",
    { class: "first", "aria-label": "What was done" },
    h(
      "div",
      { class: bad ? "told bad" : "told", role: bad ? "alert" : "status" },
      h("span", { class: "grow" }, words(text)),
      undoable ? h("button", { "data-key": "undo", onclick: () => act(undoSnip) }, "Undo") : null,
      h(
        "button",
        {
          class: "plain",
          "data-key": "dismiss",
          onclick: () => {
            said = null;
            show();
          },
        },
        "Dismiss",
      ),
    ),
  );
}

const SOURCES = {
  usage: "from the reported usage",
  estimate: "an estimate",
  exact: "an exact count",
};

function nowSection(now) {
  const isKnown = now.source !== "nothing_known",
    state = isKnown ? now.state : "unknown";
  const range =
    now.source === "estimate" && now.used_high
      ? ` (${told.short(now.used_low)}–${told.short(now.used_high)})`
      : "";
  return section(
    "How full the window is",
    { first: true, id: "now" },
    h(
      "div",
      { class: "headline" },
      isKnown
        ? h("span", { class: "figure" }, String(now.percent_used), h("small", {}, "%"))
        : h("span", { class: "figure" }, "–"),
      stateBadge(state),
      h(
        "span",
        { class: "quiet" },
        isKnown
          ? `${told.tokens(now.used_tokens)}${range} of ${told.tokens(now.effective_window)} tokens, ${SOURCES[now.source] ?? now.source}`
          : `a window of ${told.tokens(now.effective_window)} tokens`,
      ),
    ),
    gauge(now),
    h("p", { class: "advice", css: stateStyle(state) }, words(now.advice)),
    (now.notes ?? []).map((note) => h("p", { class: "note" }, words(note))),
    now.breaker
      ? h(
          "p",
          { class: "note" },
          `Automatic compaction failed ${now.breaker.failures} times in a row: ${now.breaker.reason}.${now.breaker.open_until ? ` It pauses until ${told.time(now.breaker.open_until)}.` : ""}`,
        )
      : null,
  );
}

function growthSection({ growth, thresholds, effective_window }) {
  if (growth.length < 2) return null;
  return section(
    "Growth",
    {
      lead: "The prompt at each response; the darker part came from the cache. Diamonds are compactions.",
    },
    growthChart(growth, { thresholds, effective_window }, 230),
    asTable(
      "Growth as a table",
      ["turn", "tokens", "cached", "compacted before"],
      growth.map((point) => [
        String(point.turn),
        told.tokens(point.tokens),
        told.tokens(point.cached ?? 0),
        point.boundary ?? "",
      ]),
    ),
  );
}

function largestSection({ largest, used, queued }) {
  if (!largest.length) return null;
  const action = (row) =>
    row.tool_use_id === asked?.id
      ? question(row)
      : queued.includes(row.tool_use_id)
        ? h("span", { class: "quiet" }, "cleared soon")
        : h(
            "button",
            {
              "data-key": row.tool_use_id,
              "aria-label": `Clear ${row.tool} ${row.file ?? ""}`.trim(),
              onclick: () => act(() => askSnip(row.tool_use_id)),
            },
            "Clear",
          );
  return section(
    "Largest results",
    { lead: "A cleared result leaves a line in its place; the original can always be recalled." },
    barRows(largest, { total: used, action }),
  );
}

function question({ tool_use_id: id }) {
  if (asked.why) {
    return h(
      "div",
      { class: "ask" },
      h("span", {}, `Can't be cleared: ${asked.why}.`),
      h("button", { "data-key": "keep", onclick: keep }, "All right"),
    );
  }
  return h(
    "div",
    { class: "ask" },
    h("span", {}, `Frees ${told.tokens(asked.freed)} tokens.`),
    h(
      "button",
      { class: "primary", "data-key": "snip", onclick: () => act(() => snip(id)) },
      "Clear it",
    ),
    h("button", { "data-key": "keep", onclick: keep }, "Keep it"),
  );
}

function memorySection({ told: { version, total_tokens, due, reason }, memory: read, half }) {
  const sections = (read?.sections ?? []).filter((each) => each.tokens > 0);
  const lead = [
    version
      ? `${told.tokens(total_tokens ?? 0)} tokens of notes that outlive every compaction.`
      : "",
    due ? `Due for an update: ${reason}.` : "",
  ]
    .filter(Boolean)
    .join(" ");
  return section(
    "Session memory",
    { half, lead },
    sections.length
      ? h(
          "ul",
          { class: "rows" },
          sections.map((each) =>
            h(
              "li",
              { class: "row" },
              h("span", { class: "name" }, each.name),
              h(
                "span",
                { class: "num" },
                told.tokens(each.tokens),
                h("span", { class: "dim part" }, `${told.short(each.room)} free`),
              ),
              h(
                "span",
                { class: "bar", "aria-hidden": "true" },
                h("i", {
                  css: {
                    ...kindStyle("user"),
                    width: `${(100 * each.tokens) / Math.max(1, each.tokens + each.room)}%`,
                  },
                }),
              ),
            ),
          ),
        )
      : h("p", { class: "empty" }, "Nothing is noted yet."),
    read?.markdown && sections.length
      ? h(
          "details",
          { class: "more" },
          h("summary", {}, "Read the notes"),
          h("pre", { tabindex: "0" }, read.markdown),
        )
      : null,
  );
}

function toolsSection(tools) {
  const facts = [
    [
      "Tools",
      tools.total,
      tools.active
        ? `${told.tokens(tools.loaded)} loaded, ${told.tokens(tools.deferred)} deferred`
        : "all in the prompt",
    ],
    [
      "In the prompt",
      told.short(tools.prompt_tokens),
      `of ${told.short(tools.definition_tokens)} tokens of definitions`,
    ],
    ["Found so far", tools.discovered, "by tool_search"],
  ];
  return section(
    "Tools",
    { half: true, lead: tools.reason },
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, value, more]) =>
        h("div", {}, h("dt", {}, name), h("dd", {}, String(value), h("small", {}, more))),
      ),
    ),
    tools.servers?.length
      ? h(
          "div",
          { class: "more" },
          barRows(
            tools.servers.map((row) => ({
              tool: row.server || "no server",
              note: told.count(row.tools, "tool"),
              ...row,
            })),
            { kind: "tools" },
          ),
        )
      : null,
    tools.listing
      ? h(
          "details",
          { class: "more" },
          h("summary", {}, "Deferred tools"),
          h("pre", { tabindex: "0" }, tools.listing),
        )
      : null,
  );
}

function editsSection({ edits }) {
  if (!edits.length)
    return section(
      "History of edits",
      {},
      h("p", { class: "empty" }, "Nothing was taken out of the view so far."),
    );
  const older = edits.slice(0, -EDITS_SHOWN);
  return section(
    "History of edits",
    { lead: "What was taken out of the view, by which stage, and how many tokens." },
    editList(edits.slice(-EDITS_SHOWN)),
    older.length
      ? h(
          "details",
          { class: "more" },
          h("summary", {}, `${told.count(older.length, "older edit")}`),
          editList(older),
        )
      : null,
  );
}

// ── what is done ─────────────────────────────────────────────────────────────

/** Do something a person asked for, and say it where it fails. */
async function act(what) {
  try {
    await what();
  } catch (error) {
    said = { text: error.message, bad: true };
  }
  show();
}

function keep() {
  const id = asked.id;
  asked = null;
  show();
  main.querySelector(`[data-key="${CSS.escape(id)}"]`)?.focus();
}

const snipTool = (args) => callTool(transport, "snip", { ...args, session_id: sessionId });

async function askSnip(id) {
  const would = await snipTool({ tool_use_ids: [id], dry_run: true });
  asked = {
    id,
    freed: would.tokens_freed,
    why: would.snipped.length ? "" : (would.skipped[0]?.reason ?? "nothing would be freed"),
  };
  show();
  main.querySelector(`[data-key="${asked.why ? "keep" : "snip"}"]`)?.focus();
}

async function snip(id) {
  const row = status.largest.find((each) => each.tool_use_id === id);
  const done = await snipTool({ tool_use_ids: [id] });
  asked = null;
  await refresh();
  said = {
    text: `Cleared: ${told.tokens(done.tokens_freed)} tokens are free again.`,
    snip: newestSnip(status),
  };
  transport.tellModel?.(
    `The user cleared the result ${id} (${row?.tool ?? "a tool"}) in the context panel: ${done.tokens_freed} tokens. recall brings it back.`,
  );
  show();
  main.querySelector('[data-key="undo"]')?.focus();
}

async function undoSnip() {
  const done = await snipTool({ undo: true });
  await refresh();
  said = { text: `${told.count((done.restored ?? []).length, "result")} brought back.` };
}

/** The newest snip that stands: an undo takes back exactly that one. */
const newestSnip = (now) => (now?.edits ?? []).findLast((edit) => edit.stage === "snip")?.sequence;

// ── staying up to date ───────────────────────────────────────────────────────

const askStatus = (detail) =>
  callTool(transport, "context_status", {
    detail,
    ...(sessionId ? { session_id: sessionId } : {}),
  });

/** The whole status, and the memory where that changed; nothing, if another was chosen meanwhile. */
async function refresh() {
  const wanted = sessionId,
    now = await askStatus(true);
  const isNews = now.memory?.version && now.memory.version !== memory?.version;
  const read = isNews
    ? await callTool(transport, "session_memory_read", { session_id: now.session_id })
    : memory;
  if (sessionId !== wanted) return;
  [sessionId, status, seen, memory] = [now.session_id, now, fingerprint(now), read];
}

const fingerprint = ({ session_id, version, used_tokens, state, advice }) =>
  JSON.stringify([session_id, version, used_tokens, state, advice]);

async function tick() {
  clearTimeout(timer);
  if (!document.hidden) {
    try {
      if (!status || fingerprint(await askStatus(false)) !== seen) await refresh();
      if (said?.gone) said = null;
      [wait, live.dataset.state, live.textContent] = [POLL_MS, "live", "live"];
    } catch (error) {
      fail(error);
      if (error.status === 401) return;
    }
    show();
  }
  timer = setTimeout(tick, wait);
}

function fail(error) {
  wait = Math.min(SLOWEST_POLL_MS, 2 * wait);
  // What a tool says no to has no status: the server is there.
  [live.dataset.state, live.textContent] =
    error.status === 0 ? ["live", "live"] : ["away", "not connected"];
  if (error.status === 401) return gate();
  if (!status) said = { text: whyNot(error), bad: true, gone: true };
}

/** What a person can do about it; the server's own words are for the model. */
function whyNot(error) {
  if (error instanceof TypeError) return "The server can't be reached; trying again.";
  if (!error.message.startsWith("No session")) return error.message;
  return "There is no such conversation here. Choose another above; it shows once it is opened.";
}

/** Ask for the token that the server wants; say so where it took none of those given. */
function gate() {
  const input = h("input", {
    type: "password",
    id: "token",
    autocomplete: "off",
    required: true,
    spellcheck: "false",
  });
  const open = (event) => {
    event.preventDefault();
    transport.unlock(input.value.trim());
    clear();
    start();
  };
  const lead = transport.hasToken
    ? "That token was not taken. Try another."
    : "This server answers only who has one. It is kept in this tab, until you close it.";
  clear();
  main.append(
    section(
      "A token, please",
      { lead },
      h(
        "form",
        { class: "gate", onsubmit: open },
        h("label", { for: "token" }, "Bearer token", input),
        h("button", { class: "primary" }, "Open"),
      ),
    ),
  );
  input.focus();
}

/** An empty page, on which everything is put anew. */
function clear() {
  main.replaceChildren();
  slots.clear();
}

function openSession(id) {
  if (id && id !== sessionId)
    [sessionId, status, memory, asked, said] = [id, null, null, null, null];
  seen = "";
  return tick();
}

// ── the conversations to choose from, on a page ──────────────────────────────

/** The newest sessions; a page of the list names the next. */
async function sessionsKnown() {
  const sessions = [];
  let uri = "context://sessions";
  while (uri && sessions.length < SESSIONS_LISTED) {
    const page = JSON.parse(await readResource(transport, uri));
    sessions.push(...page.sessions);
    uri = page.next;
  }
  return sessions;
}

async function listSessions() {
  const sessions = await sessionsKnown();
  if (!sessionId) sessionId = sessions[0]?.session_id ?? "";
  const known = sessions.some((each) => each.session_id === sessionId);
  const options = known || !sessionId ? sessions : [{ session_id: sessionId }, ...sessions];
  chooser.replaceChildren(
    ...options.map((each) =>
      h(
        "option",
        { value: each.session_id, selected: each.session_id === sessionId },
        each.title || each.session_id,
        each.kind && each.kind !== "main" ? ` (${each.kind})` : "",
      ),
    ),
  );
  chooser.hidden = options.length === 0;
  return options.length;
}

/** How many there are to choose from; without a list, one that the address names will do. */
async function listed() {
  try {
    return await listSessions();
  } catch (error) {
    if (error.status === 401 || !sessionId) throw error;
    return 1;
  }
}

chooser.addEventListener("change", () => {
  history.replaceState(null, "", `#${encodeURIComponent(chooser.value)}`);
  openSession(chooser.value);
});
chooser.addEventListener("focus", () => listSessions().catch(() => {}));
addEventListener("hashchange", () => openSession(decodeURIComponent(location.hash.slice(1))));
document.addEventListener("visibilitychange", () => !document.hidden && status && tick());

async function start() {
  try {
    await transport.open();
    if (transport.isApp) document.documentElement.classList.add("app");
    else if (!(await listed()) && !sessionId) {
      [live.dataset.state, live.textContent] = ["live", "live"];
      clear();
      main.append(
        section(
          "No conversation yet",
          {},
          h(
            "p",
            { class: "empty" },
            "Nothing is in this server's care so far. Once an agent opens a session or appends messages, it shows here.",
          ),
        ),
      );
      timer = setTimeout(() => {
        clear();
        start();
      }, POLL_MS);
      return;
    }
  } catch (error) {
    fail(error);
    if (error.status === 401) return;
    show();
    timer = setTimeout(start, wait);
    return;
  }
  await tick();
}

start();
