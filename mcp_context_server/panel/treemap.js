// A treemap that is entered and left, level by level.

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
    const other = node(
      parent.kind === "result" || parent.kind === "tool_use" ? "no file" : "other",
      parent.kind,
      " rest",
    );
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
  const total = weights.reduce((sum, weight) => sum + weight, 0),
    found = [];
  let x = 0,
    y = 0,
    w = width,
    hgt = height,
    at = 0;
  const area = (weight) => (weight / total) * width * height;
  while (at < weights.length && w > 0 && hgt > 0) {
    const side = Math.min(w, hgt);
    let sum = 0,
      end = at,
      worst = Infinity;
    while (end < weights.length) {
      const next = sum + area(weights[end]),
        thick = next / side;
      const proportion = Math.max(
        ...[weights[at], weights[end]].map((weight) => {
          const long = area(weight) / thick;
          return Math.max(long / thick, thick / long);
        }),
      );
      if (proportion > worst) break;
      [worst, sum, end] = [proportion, next, end + 1];
    }
    const thick = sum / side;
    let along = 0;
    for (; at < end; at += 1) {
      const long = area(weights[at]) / thick;
      found.push(
        w >= hgt ? { x, y: y + along, w: thick, h: long } : { x: x + along, y, w: long, h: thick },
      );
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
  const map = h("div", {
    class: "treemap",
    role: "group",
    "aria-label": "What fills the window, by area",
  });
  const crumbs = h("nav", { class: "crumbs", "aria-label": "Where in the tree" });
  const tip = h("div", { class: "tip", hidden: true });
  let path = [root];

  function open(nodes) {
    path = nodes;
    redraw();
    (map.querySelector(".tile") ?? map).focus?.();
  }
  function redraw() {
    const here = path.at(-1),
      width = map.clientWidth,
      height = map.clientHeight;
    crumbs.replaceChildren(
      ...path.flatMap((each, n) => [
        ...(n ? [h("span", { "aria-hidden": "true" }, "›")] : []),
        n < path.length - 1
          ? h("button", { class: "plain", onclick: () => open(path.slice(0, n + 1)) }, each.name)
          : h(
              "span",
              { "aria-current": "true" },
              `${each.name} · ${told.tokens(each.tokens)} tokens`,
            ),
      ]),
    );
    if (!width) return;
    const groups = childrenOf(here).filter((each) => each.tokens > 0);
    const boxes = squarify(
      groups.map((each) => each.tokens),
      width,
      height,
    );
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
      element.append(
        h(
          "button",
          { class: "title", tabindex: "-1", onclick: () => open([...path, group]) },
          h("b", {}, group.name),
          ` ${told.short(group.tokens)}`,
        ),
      );
    }
    const tiles = inner.length ? inner : [group];
    const places = squarify(
      tiles.map((each) => each.tokens),
      box.w,
      box.h - top,
    );
    tiles.forEach((each, n) =>
      element.append(tile(each, group, { ...places[n], y: places[n].y + top })),
    );
    return element;
  }
  function tile(each, group, box) {
    const deeper =
      each.children.size > 0
        ? [...path, group, each]
        : group.children.size > 0 && path.length === 1
          ? [...path, group]
          : null;
    const small = box.w < 44 || box.h < 24;
    const name = each.name.slice(each.name.lastIndexOf("/", each.name.length - 2) + 1);
    const element = h(
      "button",
      {
        class: small ? "tile small" : "tile",
        tabindex: "-1",
        css: { ...kindStyle(each.kind), ...placed({ ...box, w: box.w - 2, h: box.h - 2 }) },
        "aria-label": `${each === group ? "" : `${group.name}, `}${each.name}: ${told.tokens(each.tokens)} tokens, ${told.share(each.tokens, root.tokens)}`,
        onclick: () => deeper && open(deeper),
        onpointerenter: () => point(element, group, each),
        onfocus: () => point(element, group, each),
        onpointerleave: () => {
          tip.hidden = true;
        },
        onblur: () => {
          tip.hidden = true;
        },
      },
      h("span", {}, name),
      box.h > 42 ? h("span", { class: "share" }, told.share(each.tokens, root.tokens)) : null,
    );
    return element;
  }
  function point(element, group, each) {
    const area = map.getBoundingClientRect(),
      box = element.getBoundingClientRect();
    tip.replaceChildren(
      h("b", {}, each.name),
      h(
        "dl",
        {},
        h("dt", {}, "tokens"),
        h("dd", {}, told.tokens(each.tokens)),
        h("dt", {}, "of the window"),
        h("dd", {}, told.share(each.tokens, root.tokens)),
        each === group ? [] : [h("dt", {}, "part of"), h("dd", {}, group.name)],
      ),
    );
    tip.hidden = false;
    const left = Math.max(0, Math.min(area.width - tip.offsetWidth, box.left - area.left + 8));
    setStyle(tip, {
      left: `${left}px`,
      top: `${beside(box.top - area.top, box.height, tip.offsetHeight, area.height)}px`,
    });
  }
  map.addEventListener("keydown", (event) => {
    const tiles = [...map.querySelectorAll(".tile")],
      at = tiles.indexOf(document.activeElement);
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
  left: `${x}px`,
  top: `${y}px`,
  width: `${Math.max(0, w)}px`,
  height: `${Math.max(0, height)}px`,
});
