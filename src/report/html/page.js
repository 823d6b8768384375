// What a person does with the page. Text from a history is only ever set as text.

const by = (id) => document.getElementById(id);
const hidden = { names: new Set(), types: new Set() };
let chosen = -1, violation = -1, waiting = false, chart = null;

function isShown(chart, at) {
  return !hidden.names.has(chart.f[at]) && !hidden.types.has(chart.kind[at]);
}

function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    draw(chart);
    // The margin is no part of the history.
    const within = (time) => seconds(chart, Math.min(Math.max(time, chart.from), chart.from + chart.length));
    by("range").textContent = `${within(view.from)} to ${within(view.to)}`;
  });
}

function look(from, to) {
  // As far in as a hundred nanoseconds, and out to the whole.
  const length = Math.min(Math.max(to - from, 100), chart.length * 1.02);
  const middle = (from + to) / 2, spare = chart.length * 0.01;
  const start = Math.min(Math.max(middle - length / 2, chart.from - spare), chart.from + chart.length + spare - length);
  view.from = start;
  view.to = start + length;
  redraw();
}

function zoom(factor, x) {
  const still = x === undefined ? (view.from + view.to) / 2 : timeAt(x);
  look(still - (still - view.from) * factor, still + (view.to - still) * factor);
}

function pan(part) {
  const by = (view.to - view.from) * part;
  look(view.from + by, view.to + by);
}

function whole() { look(chart.from, chart.from + chart.length); }

function goTo(check) {
  if (check.culprit < 0) return;
  violation = chart.violations.indexOf(check);
  const times = check.evidence.map((at) => chart.time[at]);
  const from = Math.min(...times), to = Math.max(...times);
  const room = Math.max((to - from) * 0.2, chart.length * 0.004, 1000);
  look(from - room, to + room);
  choose(check.culprit);
}

function nextViolation() {
  const all = chart.violations;
  if (all.length) goTo(all[(violation + 1) % all.length]);
}

// Numbers stay as they are written: those past 53 bits are no numbers here. A browser that
// cannot keep them shows the line as it is.
function spread(json) {
  if (!JSON.rawJSON && /\d{16}/.test(json)) return json;
  const kept = (key, value, context) => typeof value === "number" && JSON.rawJSON ? JSON.rawJSON(context.source) : value;
  try { return JSON.stringify(JSON.parse(json, kept), null, 1); } catch { return json; }
}

function choose(at, title) {
  chosen = at;
  by("said").textContent = title || describe(at);
  const mate = chart.mate[at];
  by("json").textContent = mate < 0 ? spread(chart.json[at]) : spread(chart.json[Math.min(at, mate)]) + "\n\n" + spread(chart.json[Math.max(at, mate)]);
  const lane = chart.lanes[chart.lane[at]];
  if (lane.shown && lane.y !== undefined) {
    const frame = by("frame");
    if (lane.y < AXIS) frame.scrollTop += lane.y - AXIS;
    else if (lane.y + lane.height > view.height) frame.scrollTop += lane.y + lane.height - view.height;
  }
  redraw();
}

function describe(at) {
  return `${seconds(chart, chart.time[at])}  ${chart.lanes[chart.lane[at]].name}  ${chart.said[at]}`;
}

// The event in a lane that is nearest to a time.
function nearest(lane, time) {
  const points = lane.tracks.find((track) => track.points).points.filter((at) => isShown(chart, at));
  const far = (place) => (place in points ? Math.abs(chart.time[points[place]] - time) : Infinity);
  const place = firstAt(chart, points, time);
  return far(place - 1) <= far(place) ? points[place - 1] : points[place];
}

// Chooses in the next lane above or below that has an event; at first in the uppermost.
function changeLane(by) {
  const lanes = chart.lanes, time = chosen < 0 ? (view.from + view.to) / 2 : chart.time[chosen];
  for (let place = chosen < 0 ? 0 : chart.lane[chosen] + by; place in lanes; place += by) {
    const at = lanes[place].shown ? nearest(lanes[place], time) : undefined;
    if (at !== undefined) { bringIn(at); choose(at); return; }
  }
}

function bringIn(at) {
  const time = chart.time[at], half = (view.to - view.from) / 2;
  if (time < view.from || time > view.to) look(time - half, time + half);
}

function step(by) {
  if (chosen < 0) { changeLane(1); return; }
  const { points } = chart.lanes[chart.lane[chosen]].tracks.find((track) => track.points);
  let place = points.indexOf(chosen);
  do { place += by; } while (place >= 0 && place < points.length && !isShown(chart, points[place]));
  if (place < 0 || place >= points.length) return;
  bringIn(points[place]);
  choose(points[place]);
}

// What is under the pointer: an event, or what lasts.
function under(x, y) {
  if (y < AXIS) return null;
  const lane = chart.lanes.find((lane) => lane.shown && y >= lane.y && y < lane.y + lane.height);
  if (!lane) return null;
  if (x < GUTTER) return { at: -1, text: lane.role === lane.name ? lane.name : `${lane.name}\n${lane.role}` };
  const track = lane.tracks.find((track) => y >= lane.y + track.top - 1 && y <= lane.y + track.top + track.height + 1);
  if (!track) return null;
  const time = timeAt(x), reach = timeAt(x + 6) - time;
  if (track.spans) {
    const span = track.spans.findLast((span) => span.from - reach / 3 <= time && time < span.to + reach / 3);
    if (!span) return null;
    const belief = track.key[0] === "0";
    const told = belief ? `believes to lead ${span.lease}` + (span.label === "" ? "" : `, token ${span.label}`) : span.label;
    const text = `${lane.name} ${told}\n${seconds(chart, span.from)} to ${seconds(chart, span.to)}`;
    return { at: span.event, text };
  }
  let best = -1, near = reach;
  for (let i = firstAt(chart, track.points, time - reach); i < track.points.length; i++) {
    const at = track.points[i], far = Math.abs(chart.time[at] - time);
    if (chart.time[at] > time + reach) break;
    // The gravest of those that are equally near: a violation is never out of reach.
    const wins = far < near || (chart.culprits.has(at) && far < reach);
    if (isShown(chart, at) && wins && !chart.culprits.has(best)) { best = at; near = far; }
  }
  return best < 0 ? null : { at: best, text: `${describe(best)}\nevent ${chart.index[best]}, ${TYPES[chart.kind[best]]}` };
}

function listen() {
  const frame = by("frame");
  let drag = null;
  by("in").onclick = () => zoom(0.5);
  by("out").onclick = () => zoom(2);
  by("left").onclick = () => pan(-0.3);
  by("right").onclick = () => pan(0.3);
  by("whole").onclick = whole;
  by("jump").onclick = nextViolation;
  frame.addEventListener("wheel", (event) => {
    event.preventDefault();
    const x = event.clientX - canvas.getBoundingClientRect().left;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((event.deltaX || event.deltaY) / 1000);
    else {
      // Some browsers count in lines.
      const turned = event.deltaMode === 1 ? event.deltaY * 33 : event.deltaY;
      zoom(Math.exp(Math.max(-300, Math.min(300, turned)) / 400), x);
    }
  }, { passive: false });
  frame.addEventListener("scroll", () => { view.top = frame.scrollTop; redraw(); });
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, y: event.clientY, from: view.from, to: view.to, top: frame.scrollTop, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    if (drag) {
      const dx = event.clientX - drag.x;
      drag.moved = drag.moved || Math.abs(dx) > 3 || Math.abs(event.clientY - drag.y) > 3;
      if (!drag.moved) return;
      const by = -dx * (drag.to - drag.from) / Math.max(view.width - GUTTER, 1);
      look(drag.from + by, drag.to + by);
      frame.scrollTop = drag.top - (event.clientY - drag.y);
      return;
    }
    const found = under(x, y), tip = by("tip");
    tip.hidden = !found;
    if (!found) return;
    tip.textContent = found.text;
    tip.style.left = Math.max(Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8), 0) + "px";
    tip.style.top = Math.max(Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8), 0) + "px";
  });
  canvas.addEventListener("pointerup", (event) => {
    const box = canvas.getBoundingClientRect(), moved = drag && drag.moved;
    drag = null;
    const found = !moved && under(event.clientX - box.left, event.clientY - box.top);
    if (found && found.at >= 0) choose(found.at);
  });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointerleave", () => { by("tip").hidden = true; });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": whole,
      "ArrowLeft": () => pan(-0.2), "ArrowRight": () => pan(0.2),
      "v": nextViolation, "n": () => step(1), "p": () => step(-1),
      "j": () => changeLane(1), "k": () => changeLane(-1),
    };
    if (!Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
  addEventListener("resize", () => { height(); redraw(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readPalette(); legend(); redraw(); });
}

function add(parent, tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  parent.append(element);
  return element;
}

function choice(parent, name, on, change) {
  const label = add(parent, "label", ""), box = document.createElement("input");
  box.type = "checkbox";
  box.checked = on;
  box.onchange = () => { change(box.checked); redraw(); };
  label.append(box, " " + name);
}

// What a sign means, beside the sign as it is drawn.
function meaning(text, paint) {
  const item = add(by("legend"), "li", ""), swatch = document.createElement("canvas");
  const ratio = window.devicePixelRatio || 1;
  swatch.width = 34 * ratio; swatch.height = 18 * ratio;
  swatch.style.width = "34px"; swatch.style.height = "18px";
  const pen = swatch.getContext("2d");
  pen.scale(ratio, ratio);
  paint(pen);
  item.append(swatch, text);
}

// Of what there is: nobody looks for signs that do not occur.
function legend() {
  by("legend").replaceChildren();
  const used = new Set(chart.spans.map((span) => span.what));
  const circled = (colour, wide, radius) => (pen) => {
    pen.strokeStyle = colour; pen.lineWidth = wide;
    pen.beginPath(); pen.arc(17, 9, radius, 0, 7); pen.stroke();
  };
  if (chart.violations.length) {
    meaning("the violation", circled(palette.bad, 3, 7));
    meaning("what shows it", circled(palette.text, 1.5, 6));
  }
  if (used.has("believes to lead")) {
    meaning("believes to lead, under this token", (pen) => {
      pen.fillStyle = termColour("7"); pen.fillRect(0, 0, 34, 18);
      pen.strokeStyle = palette.text; pen.strokeRect(0.5, 0.5, 33, 17);
      pen.fillStyle = palette.text; pen.font = "11px system-ui, sans-serif"; pen.fillText("7", 5, 13);
    });
  }
  for (const what of Object.keys(HATCHES)) {
    if (!used.has(what)) continue;
    meaning(what, (pen) => {
      pen.fillStyle = patterns[what]; pen.fillRect(0, 2, 34, 14);
      pen.strokeStyle = palette[HATCHES[what][0]]; pen.strokeRect(0.5, 2.5, 33, 13);
    });
  }
  const words = { nemesis: "a fault strikes or ends", observed: "seen inside a node", invoke: "a call begins", ok: "ok", unknown: "outcome unknown", fail: "failed" };
  for (const kind of GRAVITY) {
    if (!chart.lanes.some((lane) => lane.tracks.some((track) => track.points && kind in track.glyphs))) continue;
    const [colour, filled, outline] = GLYPHS[kind];
    meaning(words[kind], (pen) => {
      pen.strokeStyle = pen.fillStyle = palette[colour];
      pen.beginPath(); outline(pen, 17, 9);
      if (filled) pen.fill(); else pen.stroke();
    });
  }
}

function height() {
  const all = chart.lanes.filter((lane) => lane.shown).reduce((sum, lane) => sum + lane.height, AXIS + 8);
  by("spacer").style.height = Math.max(all - by("frame").clientHeight, 0) + "px";
  // A scroll bar takes some of the width.
  resize();
}

function furnish() {
  for (const check of chart.violations) {
    const item = add(by("violations"), "li", "");
    const button = add(item, "button", `${check.check}: ${check.sentence}`);
    button.onclick = () => goTo(check);
    for (const line of check.reckoning) add(item, "p", line);
  }
  by("jump").disabled = chart.violations.length === 0;
  for (const lane of chart.lanes) {
    choice(by("processes"), lane.name, lane.shown, (on) => { lane.shown = on; height(); });
  }
  const flip = (set, key) => (on) => { if (on) set.delete(key); else set.add(key); arrange(chart); };
  chart.names.forEach((name, f) => choice(by("kinds"), name, true, flip(hidden.names, f)));
  TYPES.forEach((type, kind) => choice(by("kinds"), "type " + type, true, flip(hidden.types, kind)));
  for (const check of chart.checks) {
    add(by("checks"), "li", `${check.check}: ${check.verdict}${check.why ? " (" + check.why + ")" : ""}`);
  }
  by("header").textContent = spread(chart.header);
  const said = chart.violations.map((check) => `${check.check}: ${check.sentence}`).join("; ") || "nothing violated";
  canvas.setAttribute("aria-label", `${chart.count} events of ${chart.lanes.length} processes; ${said}`);
}

unpack().then((unpacked) => {
  chart = unpacked;
  readPalette();
  arrange(chart);
  furnish();
  legend();
  height();
  listen();
  whole();
  document.documentElement.dataset.ready = "true";
}).catch((error) => {
  by("summary").textContent = "The history in this page cannot be shown: a browser of 2023 or later is needed. " + error;
  throw error;
});
