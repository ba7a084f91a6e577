// Elements and words that the panel and the report share. Whatever comes from a conversation
// becomes text by `append` and `textContent` alone: no markup is ever parsed.

const SVG = "http://www.w3.org/2000/svg";

/** An element with properties, and children that are nodes or text. */
function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "css") setStyle(element, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined),
  );
  return element;
}

/** A sentence with what stands in backticks as code. */
function words(sentence) {
  return sentence.split("`").map((part, n) => (n % 2 ? h("code", {}, part) : part));
}

/** An SVG element. */
function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "css") setStyle(element, value);
    else element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity));
  return element;
}

function setStyle(element, style) {
  for (const [name, value] of Object.entries(style)) element.style.setProperty(name, value);
}

const whole = new Intl.NumberFormat("en-US");

const told = {
  tokens: (n) => whole.format(Math.round(n)),
  short(n) {
    if (n < 1000) return String(Math.round(n));
    return n < 1e6 ? `${+(n / 1e3).toFixed(n < 1e4 ? 1 : 0)}k` : `${+(n / 1e6).toFixed(2)}M`;
  },
  share(part, of) {
    if (!(of > 0)) return "–";
    if (part > 0 && part / of < 0.0005) return "< 0.1 %";
    return `${((100 * part) / of).toFixed(part / of < 0.0995 ? 1 : 0)} %`;
  },
  dollars: (d) => (d > 0 && d < 0.005 ? "< $0.01" : `$${d.toFixed(2)}`),
  /** `19 Aug, 16:14`, in the reader's own time zone; empty for what is no time. */
  time(at) {
    const date = new Date(at ?? "");
    if (Number.isNaN(date.getTime())) return "";
    return date.toLocaleString("en-GB", {
      day: "numeric",
      month: "short",
      hour: "2-digit",
      minute: "2-digit",
    });
  },
  count: (n, one, many = `${one}s`) => `${whole.format(n)} ${n === 1 ? one : many}`,
};

const KINDS = {
  result: "tool results",
  user: "user text",
  text: "assistant text",
  thinking: "thinking",
  tool_use: "tool calls",
  image: "images",
  document: "documents",
  system: "system prompt",
  tools: "tool definitions",
  system_and_tools: "system prompt, tools, memory",
};
const COLOURS = { system_and_tools: "system", system: "prompt" };
const LIGHT_KINDS = new Set(["text", "tool_use", "system", "system_and_tools"]);

const kindName = (kind) => KINDS[kind] ?? kind;

function kindStyle(kind) {
  const known = COLOURS[kind] ?? (kind in KINDS ? kind : "tools");
  return {
    "--kind": `var(--k-${known})`,
    "--on-kind": `var(--on-${LIGHT_KINDS.has(kind) ? "light" : "dark"})`,
  };
}

const STATES = {
  ok: {
    name: "room enough",
    mark: "M7 0a7 7 0 1 0 0 14A7 7 0 0 0 7 0Zm-1 10L3 7l1.2-1.2L6 7.6l3.8-3.8L11 5Z",
  },
  warning: { name: "getting full", mark: "M7 1 14 13H0Zm-.8 4v4h1.6V5Zm0 5v1.6h1.6V10Z" },
  auto_compact: { name: "time to compact", mark: "M0 3h14L7 13Z" },
  blocking: {
    name: "full: nothing more may be sent",
    mark: "M4 0h6l4 4v6l-4 4H4l-4-4V4ZM3 6v2h8V6Z",
  },
  unknown: {
    name: "nothing known yet",
    mark: "M7 0a7 7 0 1 0 0 14A7 7 0 0 0 7 0Zm0 2a5 5 0 1 1 0 10A5 5 0 0 1 7 2Z",
  },
};

const THRESHOLDS = [
  ["warning", "warning"],
  ["auto_compact", "auto-compact"],
  ["blocking", "blocking"],
];

const stateStyle = (state) => ({ "--state": `var(--${state in STATES ? state : "ok"})` });

/** The state in words, with a mark of its own shape: colour is never all that tells. */
function stateBadge(state) {
  const { name, mark } = STATES[state] ?? { name: state, mark: STATES.ok.mark };
  return h(
    "span",
    { class: "state", css: stateStyle(state) },
    s(
      "svg",
      { viewBox: "0 0 14 14", "aria-hidden": "true" },
      s("path", { d: mark, "fill-rule": "evenodd" }),
    ),
    name,
  );
}

/** The same figures as a table, for whoever would rather read. */
function asTable(title, columns, rows) {
  return h(
    "details",
    { class: "more" },
    h("summary", {}, title),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            columns.map((name, n) => h("th", { scope: "col", class: n ? "num" : "" }, name)),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map((row) =>
            h(
              "tr",
              {},
              row.map((cell, n) => h("td", { class: n ? "num" : "" }, cell)),
            ),
          ),
        ),
      ),
    ),
  );
}

/** A section with a heading; `right` stands at its end. */
function section(title, { lead, right, half, first, id } = {}, ...content) {
  const heading = id ?? title.toLowerCase().replaceAll(/[^a-z]+/g, "-");
  return h(
    "section",
    {
      class: [half ? "half" : "", first ? "first" : ""].join(" ").trim(),
      "aria-labelledby": heading,
    },
    h(
      "header",
      {},
      h("h2", { id: heading, class: first ? "unseen" : "" }, title),
      right ? h("span", { class: "right" }, right) : null,
      lead ? h("p", { class: "lead" }, lead) : null,
    ),
    ...content,
  );
}
