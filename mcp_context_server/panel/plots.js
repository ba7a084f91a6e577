// Plots along one axis, which a pointer or the arrow keys walk.

/**
 * A plot along one axis that a pointer or the arrow keys walk.
 *
 * `draw(width)` gives `{ height, nodes, x(index), over(index) }`; `tell(index)` the title and the
 * rows of the tooltip. It is a slider to assistive technology, whose value is what the tip says.
 */
function plot({ label, count, draw, tell }) {
  const svg = s("svg", { "aria-hidden": "true" });
  const tip = h("div", { class: "tip", hidden: true });
  const box = h(
    "div",
    {
      class: "plot",
      tabindex: "0",
      role: "slider",
      "aria-label": label,
      "aria-valuemin": 1,
      "aria-valuemax": count,
      "aria-valuenow": count,
    },
    svg,
    tip,
  );
  let drawn = null,
    at = count - 1;

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
    tip.replaceChildren(
      h("b", {}, title),
      h(
        "dl",
        {},
        rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
      ),
    );
    tip.hidden = false;
    place(tip, drawn.x(at), box.clientWidth);
  }
  function hide() {
    tip.hidden = true;
    svg.querySelector(".over")?.replaceChildren();
  }
  const steps = {
    ArrowLeft: -1,
    ArrowDown: -1,
    ArrowRight: 1,
    ArrowUp: 1,
    PageUp: -10,
    PageDown: 10,
    Home: -Infinity,
    End: Infinity,
  };
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
  let low = 0,
    high = count - 1;
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
  const rough = Math.max(most, 1e-9) / wanted,
    power = 10 ** Math.floor(Math.log10(rough));
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
  for (let n = 1; n < order.length; n += 1)
    order[n].y = Math.min(order[n].y, order[n - 1].y - least);
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
    const left = 44,
      right = named ? 96 : 6,
      top = 20,
      bottom = 26;
    const x = (n) =>
      left + (width - left - right) * (points.length > 1 ? n / (points.length - 1) : 0.5);
    const y = (tokens) => height - bottom - ((height - top - bottom) * tokens) / most;
    const nodes = axis(steps(most), y, width - right, left, told.short);
    for (const run of runs(points)) {
      const line = run.map((n) => `${x(n).toFixed(1)},${y(points[n].tokens).toFixed(1)}`);
      const cached = run.map((n) => `${x(n).toFixed(1)},${y(points[n].cached ?? 0).toFixed(1)}`);
      const floor = `${x(run.at(-1)).toFixed(1)},${y(0)} ${x(run[0]).toFixed(1)},${y(0)}`;
      nodes.push(
        s("polygon", { class: "area", points: `${line.join(" ")} ${floor}` }),
        s("polygon", { class: "cached", points: `${cached.join(" ")} ${floor}` }),
        s("polyline", { class: "line", points: line.join(" ") }),
      );
      if (run.length === 1)
        nodes.push(
          s("circle", { class: "dot", cx: x(run[0]), cy: y(points[run[0]].tokens), r: 4 }),
        );
    }
    points.forEach((point, n) => {
      if (!point.boundary) return;
      const middle = n ? (x(n - 1) + x(n)) / 2 : x(n);
      nodes.push(
        s("line", { class: "boundary", x1: middle, x2: middle, y1: top - 6, y2: y(0) }),
        s("path", { class: "diamond", d: `M${middle} ${top - 13}l6 6-6 6-6-6Z` }),
      );
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
    const rows = [
      ["tokens", told.tokens(point.tokens)],
      ["of the window", told.share(point.tokens, status.effective_window)],
    ];
    if (point.cached) rows.push(["from the cache", told.share(point.cached, point.tokens)]);
    if (point.boundary) rows.push(["just before", `compacted (${point.boundary})`]);
    if (point.at) rows.push(["at", told.time(point.at)]);
    return { title: `Turn ${point.turn}, response ${n + 1}`, rows };
  }
  const label =
    `Growth of the window over ${told.count(points.length, "response")}, ` +
    `${told.tokens(peak)} tokens at most, ${told.count(compactions, "compaction")}`;
  return h(
    "div",
    {},
    plot({ label, count: points.length, draw, tell }),
    shown
      ? null
      : h(
          "p",
          { class: "quiet" },
          `The thresholds lie far above: warning at ${told.tokens(status.thresholds.warning)}.`,
        ),
  );
}

/** Indexes of points in a row without a compaction between them. */
function runs(points) {
  const found = [];
  points.forEach((point, n) => (n && !point.boundary ? found.at(-1).push(n) : found.push([n])));
  return found;
}

function limits(thresholds, y, left, end, named) {
  const at = apart(
    THRESHOLDS.map(([state]) => y(thresholds[state])),
    13,
  );
  return THRESHOLDS.flatMap(([state, name], n) => [
    s("line", {
      class: "limit",
      css: stateStyle(state),
      x1: left,
      x2: end,
      y1: y(thresholds[state]),
      y2: y(thresholds[state]),
    }),
    ...(named
      ? [s("text", { class: "limit-name", css: stateStyle(state), x: end + 8, y: at[n] + 4 }, name)]
      : []),
  ]);
}

/** The numbers of turns, as many as fit under the axis. */
function turnMarks(points, x, y, width) {
  const firsts = points
    .map((point, n) => [point.turn, n])
    .filter(([turn], n) => n === 0 || turn !== points[n - 1].turn);
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

const SPENT = [
  ["read", "cache read"],
  ["written", "cache write"],
  ["fresh", "input"],
  ["output", "output"],
];

/** How dollars are told on an axis up to `most`: with as many decimals as its steps need. */
function money(most) {
  const decimals = most >= 4 ? 0 : most >= 0.04 ? 2 : 4;
  return (dollars) => `$${dollars.toFixed(decimals)}`;
}

/** The cost of single responses, at what a token of each kind cost on average in their turn. */
function byResponse(turns, points) {
  const of = new Map(turns.map((turn) => [turn.turn, turn]));
  return points
    .filter((point) => of.has(point.turn))
    .map((point) => {
      const turn = of.get(point.turn);
      const cost = {
        turn: point.turn,
        responses: 1,
        read_tokens: point.cached_tokens,
        written_tokens: point.written_tokens,
        fresh_tokens: point.tokens - point.cached_tokens - point.written_tokens,
        output_tokens: point.output_tokens,
      };
      if (turn.dollars) {
        cost.dollars = { total: 0 };
        for (const [part] of SPENT) {
          cost.dollars[part] = turn[`${part}_tokens`]
            ? (turn.dollars[part] * cost[`${part}_tokens`]) / turn[`${part}_tokens`]
            : 0;
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
    const left = 54,
      top = 10,
      bottom = 26,
      step = (width - left) / costs.length;
    const bar = Math.max(1, Math.min(46, step - (step > 6 ? 2 : 0.5)));
    const x = (n) => left + step * (n + 0.5);
    const y = (value) => height - bottom - ((height - top - bottom) * value) / most;
    const nodes = axis(steps(most), y, width, left, priced ? money(most) : told.short);
    costs.forEach((cost, n) => {
      let below = 0;
      for (const [part] of SPENT) {
        const value = worth(cost, part);
        if (value > 0)
          nodes.push(
            s("rect", {
              class: `s-${part}`,
              x: x(n) - bar / 2,
              width: bar,
              y: y(below + value),
              height: Math.max(0.4, y(below) - y(below + value)),
            }),
          );
        below += value;
      }
    });
    nodes.push(...turnMarks(costs, (n) => x(n) - bar / 2, height - 8, width));
    return {
      height,
      nodes,
      x,
      over: (n) => [
        s("rect", {
          class: "hover",
          x: x(n) - step / 2,
          width: step,
          y: top,
          height: height - top - bottom,
        }),
      ],
    };
  }
  function tell(n) {
    const cost = costs[n],
      prompt = cost.fresh_tokens + cost.read_tokens + cost.written_tokens;
    const rows = SPENT.map(([part, title]) => [
      title,
      priced
        ? `${told.short(cost[`${part}_tokens`])} · ${told.dollars(worth(cost, part))}`
        : told.tokens(worth(cost, part)),
    ]);
    if (priced) rows.push(["total", told.dollars(cost.dollars.total)]);
    rows.push(["cache hits", told.share(cost.read_tokens, prompt)]);
    if (!each) rows.push(["responses", String(cost.responses)]);
    return { title: each ? `Turn ${cost.turn}, response ${n + 1}` : `Turn ${cost.turn}`, rows };
  }
  const label = `${priced ? "Cost" : "Tokens"} of ${told.count(costs.length, each ? "response" : "turn")}, ${name(Math.max(...costs.map(total)))} at most`;
  return h(
    "div",
    {},
    plot({ label, count: costs.length, draw, tell }),
    h(
      "ul",
      { class: "keys" },
      SPENT.map(([part, title]) => h("li", {}, h("span", { class: `swatch s-${part}` }), title)),
    ),
  );
}
