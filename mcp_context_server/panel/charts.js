// Charts for the panel and the report. Whatever comes from a conversation becomes text by
// `textContent` alone: no markup is ever parsed here.

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
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
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
    return date.toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  },
  count: (n, one, many = `${one}s`) => `${whole.format(n)} ${n === 1 ? one : many}`,
};

const KINDS = {
  result: "tool results", user: "user text", text: "assistant text", thinking: "thinking",
  tool_use: "tool calls", image: "images", document: "documents", system: "system prompt",
  tools: "tool definitions", system_and_tools: "system prompt, tools, memory",
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
  ok: { name: "room enough", mark: "M7 0a7 7 0 1 0 0 14A7 7 0 0 0 7 0Zm-1 10L3 7l1.2-1.2L6 7.6l3.8-3.8L11 5Z" },
  warning: { name: "getting full", mark: "M7 1 14 13H0Zm-.8 4v4h1.6V5Zm0 5v1.6h1.6V10Z" },
  auto_compact: { name: "time to compact", mark: "M0 3h14L7 13Z" },
  blocking: { name: "full: nothing more may be sent", mark: "M4 0h6l4 4v6l-4 4H4l-4-4V4ZM3 6v2h8V6Z" },
};

const THRESHOLDS = [["warning", "warning"], ["auto_compact", "auto-compact"], ["blocking", "blocking"]];

const stateStyle = (state) => ({ "--state": `var(--${state in STATES ? state : "ok"})` });

/** The state in words, with a mark of its own shape: colour is never all that tells. */
function stateBadge(state) {
  const { name, mark } = STATES[state] ?? { name: state, mark: STATES.ok.mark };
  return h("span", { class: "state", css: stateStyle(state) },
    s("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, s("path", { d: mark, "fill-rule": "evenodd" })), name);
}

/** How full the window is and of what, against the thresholds. */
function gauge(status) {
  const full = Math.max(1, status.effective_window), used = status.used_tokens;
  const scale = 100 / Math.max(full, used);
  const kinds = sortedKinds(status.breakdown);
  const meter = h("div", {
    class: "gauge", role: "meter", "aria-label": "Context window in use", "aria-valuemin": 0,
    "aria-valuemax": full, "aria-valuenow": Math.min(full, used),
    "aria-valuetext": `${told.tokens(used)} of ${told.tokens(full)} tokens, ${STATES[status.state]?.name ?? status.state}`,
  },
    h("div", { class: "fill" }, kinds.map(([kind, tokens]) =>
      h("i", { css: { ...kindStyle(kind), width: `calc(${tokens * scale}% - 2px)` }, title: `${kindName(kind)}: ${told.tokens(tokens)}` }))),
    THRESHOLDS.map(([state]) =>
      h("span", { class: "tick", css: { ...stateStyle(state), left: `${Math.min(100, status.thresholds[state] * scale)}%` } })));
  return h("div", {}, meter,
    h("ul", { class: "keys", "aria-label": "Thresholds" }, THRESHOLDS.map(([state, name]) =>
      h("li", { css: stateStyle(state) }, h("span", { class: "swatch line" }), `${name} `, h("b", {}, told.tokens(status.thresholds[state]))))),
    h("ul", { class: "keys", "aria-label": "What fills the window" }, kinds.map(([kind, tokens]) =>
      h("li", { css: kindStyle(kind) }, h("span", { class: "swatch" }), `${kindName(kind)} `,
        h("b", {}, told.short(tokens)), ` ${told.share(tokens, used)}`))));
}

function sortedKinds(breakdown) {
  return Object.entries(breakdown).filter(([, tokens]) => tokens > 0).sort((a, b) => b[1] - a[1]);
}

/** A name with its last part first to be read: the directories before it are dim. */
function nameOf(tool, file) {
  const parts = [];
  if (tool) parts.push(h("span", {}, tool, file ? " " : ""));
  if (file) {
    const at = file.lastIndexOf("/", file.length - 2) + 1;
    parts.push(h("span", {}, file.slice(at)), h("span", { class: "dim" }, at > 1 ? `  ${file.slice(0, at)}` : ""));
  }
  return h("span", { class: "name", title: `${tool} ${file}`.trim() }, parts);
}

/** Rows of a name, a bar and a figure; `action` may add a control to each. */
function barRows(rows, { total, kind = "result", action } = {}) {
  const most = Math.max(1, ...rows.map((row) => row.tokens));
  return h("ul", { class: "rows" }, rows.map((row) =>
    h("li", { class: action ? "row acts" : "row" },
      nameOf(row.tool ?? "", row.file ?? ""),
      h("span", { class: "num" }, told.tokens(row.tokens), h("span", { class: "dim part" }, total ? told.share(row.tokens, total) : row.note ?? "")),
      action ? action(row) : null,
      h("span", { class: "bar", "aria-hidden": "true" }, h("i", { css: { ...kindStyle(row.kind ?? kind), width: `${(100 * row.tokens) / most}%` } })))));
}

// ── plots ────────────────────────────────────────────────────────────────────

/**
 * A plot along one axis that a pointer or the arrow keys walk.
 *
 * `draw(width)` gives `{ height, nodes, x(index), over(index) }`; `tell(index)` the title and the
 * rows of the tooltip. It is a slider to assistive technology, whose value is what the tip says.
 */
function plot({ label, count, draw, tell }) {
  const svg = s("svg", { "aria-hidden": "true" });
  const tip = h("div", { class: "tip", hidden: true });
  const box = h("div", { class: "plot", tabindex: "0", role: "slider", "aria-label": label, "aria-valuemin": 1, "aria-valuemax": count, "aria-valuenow": count }, svg, tip);
  let drawn = null, at = count - 1;

  function redraw() {
    const width = box.clientWidth;
    if (!width) return;
    drawn = draw(width);
    svg.setAttribute("viewBox", `0 0 ${width} ${drawn.height}`);
    svg.replaceChildren(...drawn.nodes, s("g", { class: "over" }));
    tip.hidden = true;
  }
  function show(index) {
    if (!drawn) return;
    at = Math.max(0, Math.min(count - 1, index));
    const { title, rows } = tell(at);
    box.setAttribute("aria-valuenow", at + 1);
    box.setAttribute("aria-valuetext", [title, ...rows.map((row) => row.join(" "))].join(", "));
    svg.querySelector(".over").replaceChildren(...drawn.over(at));
    tip.replaceChildren(h("b", {}, title), h("dl", {}, rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
    tip.hidden = false;
    place(tip, drawn.x(at), box.clientWidth);
  }
  function hide() {
    tip.hidden = true;
    svg.querySelector(".over")?.replaceChildren();
  }
  const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    if (!(event.key in steps)) return;
    event.preventDefault();
    show(tip.hidden ? at : Math.max(0, Math.min(count - 1, at + steps[event.key])));
  });
  box.addEventListener("pointermove", (event) => {
    if (!drawn) return;
    const x = event.clientX - box.getBoundingClientRect().left;
    show(nearest(count, drawn.x, x));
  });
  box.addEventListener("pointerleave", hide);
  box.addEventListener("blur", hide);
  box.addEventListener("focus", () => box.matches(":focus-visible") && show(at));
  new ResizeObserver(redraw).observe(box);
  return box;
}

/** The index whose place is nearest; places ascend. */
function nearest(count, x, wanted) {
  let low = 0, high = count - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (x(middle) < wanted) low = middle;
    else high = middle;
  }
  return wanted - x(low) < x(high) - wanted ? low : high;
}

function place(tip, x, width) {
  const size = tip.offsetWidth;
  const left = x + 14 + size <= width ? x + 14 : Math.max(0, x - 14 - size);
  setStyle(tip, { left: `${left}px`, top: "6px" });
}

/** Round steps for an axis from 0 to at least `most`. */
function steps(most, wanted = 4) {
  const rough = Math.max(most, 1e-9) / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough);
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, n) => n * step);
}

function axis(values, y, width, left, name) {
  return values.flatMap((value) => [
    s("line", { class: "grid", x1: left, x2: width, y1: y(value), y2: y(value) }),
    s("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, name(value)),
  ]);
}

/** Places moved apart, so that labels of a line's height do not run into each other. */
function apart(places, least) {
  const order = places.map((y, at) => ({ y, at })).sort((a, b) => b.y - a.y);
  for (let n = 1; n < order.length; n += 1) order[n].y = Math.min(order[n].y, order[n - 1].y - least);
  const moved = [];
  for (const { y, at } of order) moved[at] = y;
  return moved;
}

/** The window over responses: what of it came from the cache, boundaries, and thresholds. */
function growthChart(points, status, height = 260) {
  const peak = Math.max(1, ...points.map((point) => point.tokens));
  const shown = peak >= status.thresholds.warning / 4;
  const most = 1.06 * (shown ? Math.max(peak, status.thresholds.blocking) : peak);
  const compactions = points.filter((point) => point.boundary).length;

  function draw(width) {
    const named = shown && width > 560;
    const left = 44, right = named ? 96 : 6, top = 20, bottom = 26;
    const x = (n) => left + ((width - left - right) * (points.length > 1 ? n / (points.length - 1) : 0.5));
    const y = (tokens) => height - bottom - ((height - top - bottom) * tokens) / most;
    const nodes = axis(steps(most), y, width - right, left, told.short);
    for (const run of runs(points)) {
      const line = run.map((n) => `${x(n).toFixed(1)},${y(points[n].tokens).toFixed(1)}`);
      const cached = run.map((n) => `${x(n).toFixed(1)},${y(points[n].cached ?? 0).toFixed(1)}`);
      const floor = `${x(run.at(-1)).toFixed(1)},${y(0)} ${x(run[0]).toFixed(1)},${y(0)}`;
      nodes.push(s("polygon", { class: "area", points: `${line.join(" ")} ${floor}` }),
        s("polygon", { class: "cached", points: `${cached.join(" ")} ${floor}` }),
        s("polyline", { class: "line", points: line.join(" ") }));
      if (run.length === 1) nodes.push(s("circle", { class: "dot", cx: x(run[0]), cy: y(points[run[0]].tokens), r: 4 }));
    }
    points.forEach((point, n) => {
      if (!point.boundary) return;
      const middle = n ? (x(n - 1) + x(n)) / 2 : x(n);
      nodes.push(s("line", { class: "boundary", x1: middle, x2: middle, y1: top - 6, y2: y(0) }),
        s("path", { class: "diamond", d: `M${middle} ${top - 13}l6 6-6 6-6-6Z` }));
    });
    if (shown) nodes.push(...limits(status.thresholds, y, left, width - right, named));
    nodes.push(...turnMarks(points, x, height - 8, width));
    const over = (n) => [
      s("line", { class: "cursor", x1: x(n), x2: x(n), y1: top, y2: y(0) }),
      s("circle", { class: "dot", cx: x(n), cy: y(points[n].tokens), r: 4.5 }),
    ];
    return { height, nodes, x, over };
  }
  function tell(n) {
    const point = points[n];
    const rows = [["tokens", told.tokens(point.tokens)], ["of the window", told.share(point.tokens, status.effective_window)]];
    if (point.cached) rows.push(["from the cache", told.share(point.cached, point.tokens)]);
    if (point.boundary) rows.push(["just before", `compacted (${point.boundary})`]);
    if (point.at) rows.push(["at", told.time(point.at)]);
    return { title: `Turn ${point.turn}, response ${n + 1}`, rows };
  }
  const label = `Growth of the window over ${told.count(points.length, "response")}, ` +
    `${told.tokens(peak)} tokens at most, ${told.count(compactions, "compaction")}`;
  return h("div", {}, plot({ label, count: points.length, draw, tell }),
    shown ? null : h("p", { class: "quiet" }, `The thresholds lie far above: warning at ${told.tokens(status.thresholds.warning)}.`));
}

/** Indexes of points in a row without a compaction between them. */
function runs(points) {
  const found = [];
  points.forEach((point, n) => (n && !point.boundary ? found.at(-1).push(n) : found.push([n])));
  return found;
}

function limits(thresholds, y, left, end, named) {
  const at = apart(THRESHOLDS.map(([state]) => y(thresholds[state])), 13);
  return THRESHOLDS.flatMap(([state, name], n) => [
    s("line", { class: "limit", css: stateStyle(state), x1: left, x2: end, y1: y(thresholds[state]), y2: y(thresholds[state]) }),
    ...(named ? [s("text", { class: "limit-name", css: stateStyle(state), x: end + 8, y: at[n] + 4 }, name)] : []),
  ]);
}

/** The numbers of turns, as many as fit under the axis. */
function turnMarks(points, x, y, width) {
  const firsts = points.map((point, n) => [point.turn, n]).filter(([turn], n) => n === 0 || turn !== points[n - 1].turn);
  const marks = [];
  let free = -Infinity;
  for (const [turn, n] of firsts) {
    const place = Math.max(x(n), 44);
    if (place < free || place > width - 30) continue;
    marks.push(s("text", { x: place, y }, marks.length ? String(turn) : `turn ${turn}`));
    free = place + (marks.length === 1 ? 62 : 34);
  }
  return marks;
}

const SPENT = [["read", "cache read"], ["written", "cache write"], ["fresh", "input"], ["output", "output"]];

/** How dollars are told on an axis up to `most`: with as many decimals as its steps need. */
function money(most) {
  const decimals = most >= 4 ? 0 : most >= 0.04 ? 2 : 4;
  return (dollars) => `$${dollars.toFixed(decimals)}`;
}

/** The cost of single responses, at what a token of each kind cost on average in their turn. */
function byResponse(turns, points) {
  const of = new Map(turns.map((turn) => [turn.turn, turn]));
  return points.filter((point) => of.has(point.turn)).map((point) => {
    const turn = of.get(point.turn);
    const cost = { turn: point.turn, responses: 1, read_tokens: point.cached_tokens, written_tokens: point.written_tokens,
      fresh_tokens: point.tokens - point.cached_tokens - point.written_tokens, output_tokens: point.output_tokens };
    if (turn.dollars) {
      cost.dollars = { total: 0 };
      for (const [part] of SPENT) {
        cost.dollars[part] = turn[`${part}_tokens`] ? (turn.dollars[part] * cost[`${part}_tokens`]) / turn[`${part}_tokens`] : 0;
        cost.dollars.total += cost.dollars[part];
      }
    }
    return cost;
  });
}

/** What each turn (or response) cost, by what it was paid for; tokens where prices are not known. */
function costChart(costs, { each = false, height = 220 } = {}) {
  const priced = costs.every((cost) => cost.dollars);
  const worth = (cost, part) => (priced ? cost.dollars[part] : cost[`${part}_tokens`]);
  const total = (cost) => SPENT.reduce((sum, [part]) => sum + worth(cost, part), 0);
  const name = priced ? told.dollars : told.short;
  const most = 1.06 * Math.max(priced ? 0.001 : 1, ...costs.map(total));

  function draw(width) {
    const left = 54, top = 10, bottom = 26, step = (width - left) / costs.length;
    const bar = Math.max(1, Math.min(46, step - (step > 6 ? 2 : 0.5)));
    const x = (n) => left + step * (n + 0.5);
    const y = (value) => height - bottom - ((height - top - bottom) * value) / most;
    const nodes = axis(steps(most), y, width, left, priced ? money(most) : told.short);
    costs.forEach((cost, n) => {
      let below = 0;
      for (const [part] of SPENT) {
        const value = worth(cost, part);
        if (value > 0) nodes.push(s("rect", { class: `s-${part}`, x: x(n) - bar / 2, width: bar, y: y(below + value), height: Math.max(0.4, y(below) - y(below + value)) }));
        below += value;
      }
    });
    nodes.push(...turnMarks(costs, (n) => x(n) - bar / 2, height - 8, width));
    return { height, nodes, x, over: (n) => [s("rect", { class: "hover", x: x(n) - step / 2, width: step, y: top, height: height - top - bottom })] };
  }
  function tell(n) {
    const cost = costs[n], prompt = cost.fresh_tokens + cost.read_tokens + cost.written_tokens;
    const rows = SPENT.map(([part, title]) => [title, priced ? `${told.short(cost[`${part}_tokens`])} · ${told.dollars(worth(cost, part))}` : told.tokens(worth(cost, part))]);
    if (priced) rows.push(["total", told.dollars(cost.dollars.total)]);
    rows.push(["cache hits", told.share(cost.read_tokens, prompt)]);
    if (!each) rows.push(["responses", String(cost.responses)]);
    return { title: each ? `Turn ${cost.turn}, response ${n + 1}` : `Turn ${cost.turn}`, rows };
  }
  const label = `${priced ? "Cost" : "Tokens"} of ${told.count(costs.length, each ? "response" : "turn")}, ${name(Math.max(...costs.map(total)))} at most`;
  return h("div", {}, plot({ label, count: costs.length, draw, tell }),
    h("ul", { class: "keys" }, SPENT.map(([part, title]) => h("li", {}, h("span", { class: `swatch s-${part}` }), title))));
}

// ── treemap ──────────────────────────────────────────────────────────────────

/** Parts as a tree: class, tool, file. */
function treeOf(parts) {
  const root = node("everything", "", "");
  for (const part of parts) {
    const path = [[kindName(part.kind), part.kind]];
    if (part.tool) path.push([part.tool, part.tool]);
    if (part.file) path.push([part.file, part.file]);
    let here = root;
    here.tokens += part.tokens;
    for (const [name, key] of path) {
      if (!here.children.has(key)) here.children.set(key, node(name, part.kind, key));
      here = here.children.get(key);
      here.tokens += part.tokens;
    }
  }
  return root;
}

const node = (name, kind, key) => ({ name, kind, key, tokens: 0, children: new Map() });

/** The node's children, largest first; what they don't account for is one more. */
function childrenOf(parent) {
  const children = [...parent.children.values()];
  const rest = parent.tokens - children.reduce((sum, child) => sum + child.tokens, 0);
  if (children.length && rest > 0) {
    const other = node(parent.kind === "result" || parent.kind === "tool_use" ? "no file" : "other", parent.kind, " rest");
    other.tokens = rest;
    children.push(other);
  }
  return children.sort((a, b) => b.tokens - a.tokens);
}

/**
 * Rectangles for weights, largest first, none longer and thinner than it must be.
 *
 * A row along the shorter side takes weights as long as that makes its worst proportion better.
 */
function squarify(weights, width, height) {
  const total = weights.reduce((sum, weight) => sum + weight, 0), found = [];
  let x = 0, y = 0, w = width, hgt = height, at = 0;
  const area = (weight) => (weight / total) * width * height;
  while (at < weights.length && w > 0 && hgt > 0) {
    const side = Math.min(w, hgt);
    let sum = 0, end = at, worst = Infinity;
    while (end < weights.length) {
      const next = sum + area(weights[end]), thick = next / side;
      const proportion = Math.max(...[weights[at], weights[end]].map((weight) => {
        const long = area(weight) / thick;
        return Math.max(long / thick, thick / long);
      }));
      if (proportion > worst) break;
      [worst, sum, end] = [proportion, next, end + 1];
    }
    const thick = sum / side;
    let along = 0;
    for (; at < end; at += 1) {
      const long = area(weights[at]) / thick;
      found.push(w >= hgt ? { x, y: y + along, w: thick, h: long } : { x: x + along, y, w: long, h: thick });
      along += long;
    }
    if (w >= hgt) [x, w] = [x + thick, w - thick];
    else [y, hgt] = [y + thick, hgt - thick];
  }
  return found;
}

/** Where a tip of a height goes: into a tile that is high enough, else below it, else above. */
function beside(top, tall, tip, area) {
  if (tall > tip + 60) return top + 46;
  return top + tall + 6 + tip < area + 40 ? top + tall + 6 : top - tip - 6;
}

/** What fills the window, by area; a tile or a title opens what is in it. */
function treemap(parts) {
  const root = treeOf(parts);
  const map = h("div", { class: "treemap", role: "group", "aria-label": "What fills the window, by area" });
  const crumbs = h("nav", { class: "crumbs", "aria-label": "Where in the tree" });
  const tip = h("div", { class: "tip", hidden: true });
  let path = [root];

  function open(nodes) {
    path = nodes;
    redraw();
    (map.querySelector(".tile") ?? map).focus?.();
  }
  function redraw() {
    const here = path.at(-1), width = map.clientWidth, height = map.clientHeight;
    crumbs.replaceChildren(...path.flatMap((each, n) => [
      ...(n ? [h("span", { "aria-hidden": "true" }, "›")] : []),
      n < path.length - 1 ? h("button", { class: "plain", onclick: () => open(path.slice(0, n + 1)) }, each.name)
        : h("span", { "aria-current": "true" }, `${each.name} · ${told.tokens(each.tokens)} tokens`),
    ]));
    if (!width) return;
    const groups = childrenOf(here).filter((each) => each.tokens > 0);
    const boxes = squarify(groups.map((each) => each.tokens), width, height);
    map.replaceChildren(...groups.map((group, n) => groupBox(group, boxes[n])), tip);
    const first = map.querySelector(".tile");
    if (first) first.tabIndex = 0;
    tip.hidden = true;
  }
  function groupBox(group, box) {
    const inner = childrenOf(group).filter((each) => each.tokens > 0);
    const titled = inner.length > 0 && box.h > 46 && box.w > 60;
    const top = titled ? 20 : 0;
    const element = h("div", { class: "group", css: placed(box) });
    if (titled) {
      element.append(h("button", { class: "title", tabindex: "-1", onclick: () => open([...path, group]) }, h("b", {}, group.name), ` ${told.short(group.tokens)}`));
    }
    const tiles = inner.length ? inner : [group];
    const places = squarify(tiles.map((each) => each.tokens), box.w, box.h - top);
    tiles.forEach((each, n) => element.append(tile(each, group, { ...places[n], y: places[n].y + top })));
    return element;
  }
  function tile(each, group, box) {
    const deeper = each.children.size > 0 ? [...path, group, each] : group.children.size > 0 && path.length === 1 ? [...path, group] : null;
    const small = box.w < 44 || box.h < 24;
    const name = each.name.slice(each.name.lastIndexOf("/", each.name.length - 2) + 1);
    const element = h("button", {
      class: small ? "tile small" : "tile", tabindex: "-1", css: { ...kindStyle(each.kind), ...placed({ ...box, w: box.w - 2, h: box.h - 2 }) },
      "aria-label": `${each === group ? "" : `${group.name}, `}${each.name}: ${told.tokens(each.tokens)} tokens, ${told.share(each.tokens, root.tokens)}`,
      onclick: () => deeper && open(deeper),
      onpointerenter: () => point(element, group, each), onfocus: () => point(element, group, each),
      onpointerleave: () => { tip.hidden = true; }, onblur: () => { tip.hidden = true; },
    }, h("span", {}, name), box.h > 42 ? h("span", { class: "share" }, told.share(each.tokens, root.tokens)) : null);
    return element;
  }
  function point(element, group, each) {
    const area = map.getBoundingClientRect(), box = element.getBoundingClientRect();
    tip.replaceChildren(h("b", {}, each.name), h("dl", {},
      h("dt", {}, "tokens"), h("dd", {}, told.tokens(each.tokens)),
      h("dt", {}, "of the window"), h("dd", {}, told.share(each.tokens, root.tokens)),
      each === group ? [] : [h("dt", {}, "part of"), h("dd", {}, group.name)]));
    tip.hidden = false;
    const left = Math.max(0, Math.min(area.width - tip.offsetWidth, box.left - area.left + 8));
    setStyle(tip, { left: `${left}px`, top: `${beside(box.top - area.top, box.height, tip.offsetHeight, area.height)}px` });
  }
  map.addEventListener("keydown", (event) => {
    const tiles = [...map.querySelectorAll(".tile")], at = tiles.indexOf(document.activeElement);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" || event.key === "Backspace") {
      if (path.length > 1) open(path.slice(0, -1));
    } else if (step && at >= 0) {
      const next = tiles[(at + step + tiles.length) % tiles.length];
      tiles[at].tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    } else return;
    event.preventDefault();
  });
  new ResizeObserver(redraw).observe(map);
  redraw();
  return h("div", {}, crumbs, map);
}

const placed = ({ x, y, w, h: height }) => ({
  left: `${x}px`, top: `${y}px`, width: `${Math.max(0, w)}px`, height: `${Math.max(0, height)}px`,
});

/** The same figures as a table, for whoever would rather read. */
function asTable(title, columns, rows) {
  return h("details", { class: "more" }, h("summary", {}, title),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, h("table", {},
      h("thead", {}, h("tr", {}, columns.map((name, n) => h("th", { scope: "col", class: n ? "num" : "" }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, n) => h("td", { class: n ? "num" : "" }, cell))))))));
}

/** A section with a heading; `right` stands at its end. */
function section(title, { lead, right, half, first, id } = {}, ...content) {
  const heading = id ?? title.toLowerCase().replaceAll(/[^a-z]+/g, "-");
  return h("section", { class: [half ? "half" : "", first ? "first" : ""].join(" ").trim(), "aria-labelledby": heading },
    h("header", {}, h("h2", { id: heading, class: first ? "unseen" : "" }, title), right ? h("span", { class: "right" }, right) : null, lead ? h("p", { class: "lead" }, lead) : null),
    ...content);
}

const STAGES = {
  spill: "spilled", reread: "read again", outdated: "outdated", snip: "cleared", microcompact: "old results cleared", media: "media taken out",
};

/** Edits of the view, newest first: what it was, when, by what, and how many tokens. */
function editList(edits) {
  return h("ol", { class: "edits" }, [...edits].reverse().map((edit) => {
    const what = edit.type === "replace" ? STAGES[edit.stage] ?? edit.stage ?? "replaced" : edit.type.replaceAll("_", " ");
    const count = edit.references?.length ?? 0;
    const [before, after] = [edit.tokens_before, edit.tokens_after];
    const figure = before ? `${told.tokens(before)}${after ? ` → ${told.tokens(after)}` : " before"}`
      : edit.tokens_freed > 0 ? `−${told.tokens(edit.tokens_freed)}` : "";
    return h("li", {},
      h("span", { class: "dim num" }, told.time(edit.at) || `#${edit.sequence}`),
      h("span", {}, what, h("span", { class: "dim" }, [edit.trigger ? ` · ${edit.trigger}` : "", count ? ` · ${told.count(count, "original")}` : ""].join(""))),
      h("span", { class: "num" }, figure));
  }));
}
