// Draws the part of the chart that is in view. What falls into one pixel is drawn once,
// the gravest of it on top, so that the work is bounded by the screen.

const GUTTER = 118, AXIS = 24;
const canvas = document.getElementById("lanes"), ink = canvas.getContext("2d");
const view = { from: 0, to: 1, top: 0, width: 0, height: 0 };
let palette = {}, patterns = {}, colours = {};

function readPalette() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ground", "text", "faint", "line", "band", "good", "bad", "open", "fault", "focus"]) {
    palette[name] = style.getPropertyValue("--" + name).trim();
  }
  palette.dark = matchMedia("(prefers-color-scheme: dark)").matches;
  colours = { narrow: new Map(), wide: new Map() };
  patterns = {};
  for (const what of Object.keys(HATCHES)) patterns[what] = hatch(what);
}

// Each condition has its own hatching, so that no colour is needed to tell it.
const HATCHES = {
  "paused": ["fault", [[0, 8, 8, 0]]],
  "suspended": ["fault", [[0, 0, 8, 8]]],
  "down": ["bad", [[0, 8, 8, 0], [0, 0, 8, 8]]],
  "starved": ["open", [[2, 0, 2, 8]]],
  "cut off": ["bad", [[0, 2, 8, 2], [0, 6, 8, 6]]],
  "slow or lossy links": ["open", [[0, 2, 4, 6], [4, 6, 8, 2]]],
  "slow or full disk": ["open", [[0, 4, 8, 4], [4, 0, 4, 8]]],
  "clock off its rate": ["focus", [[0, 4, 4, 4]]],
  "lock-delay": ["faint", [[0, 4, 2, 4], [4, 4, 6, 4]]],
};

function hatch(what) {
  const [colour, lines] = HATCHES[what];
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const pen = tile.getContext("2d");
  pen.strokeStyle = palette[colour];
  pen.lineWidth = 1.3;
  for (const [x0, y0, x1, y1] of lines) {
    pen.beginPath(); pen.moveTo(x0, y0); pen.lineTo(x1, y1); pen.stroke();
  }
  return ink.createPattern(tile, "repeat");
}

// Neighbouring terms are far apart on the wheel. A bar too narrow for an outline is inked
// darker than one that has a number on it. Each colour is made once.
function termColour(token, narrow) {
  const known = narrow ? colours.narrow : colours.wide;
  if (!known.has(token)) {
    const hue = token === "" ? 210 : (Number(BigInt(token) % 360n) * 137.5) % 360;
    const shade = narrow ? (palette.dark ? "60% 65%" : "65% 35%") : palette.dark ? "55% 25%" : "65% 80%";
    known.set(token, `hsl(${hue} ${shade})`);
  }
  return known.get(token);
}

// How wide texts are: to measure one takes longer than to draw it.
const widths = new Map();

function widthOf(text) {
  const key = ink.font + text;
  if (!widths.has(key)) {
    if (widths.size > 20000) widths.clear();
    widths.set(key, ink.measureText(text).width);
  }
  return widths.get(key);
}

// Text in the gutter, cut off where it does not fit.
function write(text, x, y, room, align = "left") {
  let fits = text;
  if (widthOf(text) > room) {
    let least = 0, most = text.length;
    while (least < most) {
      const middle = (least + most + 1) >> 1;
      if (widthOf(text.slice(0, middle) + "…") <= room) least = middle; else most = middle - 1;
    }
    fits = text.slice(0, least) + "…";
  }
  ink.textAlign = align;
  ink.fillText(fits, x, y);
  ink.textAlign = "left";
}

function xOf(time) {
  return GUTTER + ((time - view.from) / (view.to - view.from)) * (view.width - GUTTER);
}

function timeAt(x) {
  return view.from + ((x - GUTTER) / Math.max(view.width - GUTTER, 1)) * (view.to - view.from);
}

function resize() {
  const frame = document.getElementById("frame");
  view.width = frame.clientWidth;
  view.height = frame.clientHeight;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(view.width * ratio);
  canvas.height = Math.round(view.height * ratio);
  canvas.style.height = view.height + "px";
  ink.setTransform(ratio, 0, 0, ratio, 0, 0);
}

function draw(chart) {
  ink.fillStyle = palette.ground;
  ink.fillRect(0, 0, view.width, view.height);
  ink.textBaseline = "middle";
  let y = AXIS - view.top;
  for (const lane of chart.lanes) {
    if (!lane.shown) continue;
    lane.y = y;
    if (y + lane.height > AXIS && y < view.height) drawLane(chart, lane);
    y += lane.height;
  }
  drawMoments(chart, Math.min(y + 6 + 16 * Math.min(chart.violations.length, 6), view.height));
  drawAxis(chart);
}

function drawLane(chart, lane) {
  ink.fillStyle = lane.place % 2 ? palette.ground : palette.band;
  ink.fillRect(0, lane.y, view.width, lane.height);
  ink.save();
  ink.beginPath();
  ink.rect(GUTTER, lane.y, view.width - GUTTER, lane.height);
  ink.clip();
  for (const track of lane.tracks) {
    if (track.points) drawEvents(chart, lane, track); else drawSpans(lane, track);
  }
  ink.restore();
  ink.fillStyle = palette.text;
  ink.font = "bold 13px system-ui, sans-serif";
  write(lane.name, 8, lane.y + 13, GUTTER - 16);
  ink.fillStyle = palette.faint;
  ink.font = "11px system-ui, sans-serif";
  const leases = lane.tracks.some((track) => track.key[0] === "0" && track.label);
  if (!leases && lane.role !== lane.name) write(lane.role, 8, lane.y + 27, GUTTER - 16);
  for (const track of lane.tracks) {
    if (track.label) write(track.label, GUTTER - 6, lane.y + track.top + track.height / 2 + 0.5, GUTTER - 46, "right");
  }
}

function drawSpans(lane, track) {
  const top = lane.y + track.top, belief = track.key[0] === "0", { spans } = track;
  const narrow = new Map(), labels = [];
  let drawnTo = -1;
  ink.font = "11px system-ui, sans-serif";
  for (let i = firstThatReaches(track, view.from); i < spans.length; i++) {
    const span = spans[i];
    if (span.from > view.to) break;
    if (span.to < view.from) continue;
    const left = Math.max(xOf(span.from), GUTTER - 2), right = Math.min(xOf(span.to), view.width + 2);
    const width = Math.max(right - left, 1);
    // Shorter than a pixel, in a pixel that is drawn already.
    if (width <= 1 && left < drawnTo) continue;
    drawnTo = Math.max(drawnTo, left + width);
    if (width <= 3) {
      // Too narrow for an outline or a hatching to be seen.
      const colour = belief ? termColour(span.label, true) : palette[HATCHES[span.what][0]];
      if (!narrow.has(colour)) narrow.set(colour, new Path2D());
      narrow.get(colour).rect(left, top, width, track.height);
      continue;
    }
    ink.fillStyle = belief ? termColour(span.label) : patterns[span.what];
    ink.fillRect(left, top, width, track.height);
    ink.strokeStyle = belief ? palette.text : palette[HATCHES[span.what][0]];
    ink.strokeRect(left + 0.5, top + 0.5, width - 1, track.height - 1);
    if (width >= 10) labels.push([i, left, right]);
  }
  for (const [colour, bars] of narrow) {
    ink.fillStyle = colour;
    ink.fill(bars);
  }
  // On top of the bars, and each in what the next bar leaves of its own.
  for (const [i, left, right] of labels) {
    const span = spans[i], next = i + 1 < spans.length ? xOf(spans[i + 1].from) : Infinity;
    const room = Math.min(right, next) - left;
    if (belief) inside(span.label === "" ? "leads" : "token " + span.label, span.label, left, room, top, track.height, false);
    else inside(span.label, span.what, left, room, top, track.height, true);
  }
}

// The longer text if it fits, or else the shorter.
function inside(long, short, left, width, top, height, hatched) {
  if (width < 10) return;
  for (const text of [long, short]) {
    const wide = widthOf(text);
    if (text === "" || wide + 6 > width) continue;
    ink.fillStyle = palette.ground;
    if (hatched) ink.fillRect(left + 2, top + 1, wide + 4, height - 2);
    ink.fillStyle = palette.text;
    ink.fillText(text, left + 4, top + height / 2 + 0.5);
    return;
  }
}

// How each kind of event is drawn: its colour, whether it is filled, its outline.
const GLYPHS = {
  nemesis: ["fault", true, (pen, x, y) => { pen.moveTo(x - 3, y - 5); pen.lineTo(x + 3, y - 5); pen.lineTo(x, y + 5); pen.closePath(); }],
  observed: ["faint", false, (pen, x, y) => { pen.moveTo(x, y - 4); pen.lineTo(x + 3, y); pen.lineTo(x, y + 4); pen.lineTo(x - 3, y); pen.closePath(); }],
  invoke: ["faint", false, (pen, x, y) => { pen.moveTo(x, y - 5); pen.lineTo(x, y + 5); }],
  ok: ["good", true, (pen, x, y) => { pen.moveTo(x + 3, y); pen.arc(x, y, 3, 0, 7); }],
  unknown: ["open", false, (pen, x, y) => { pen.moveTo(x - 2, y - 3); pen.lineTo(x + 1, y - 5); pen.lineTo(x + 2, y - 2); pen.lineTo(x, y); pen.lineTo(x, y + 2); pen.moveTo(x, y + 4); pen.lineTo(x, y + 5); }],
  fail: ["bad", false, (pen, x, y) => { pen.moveTo(x - 3, y - 3); pen.lineTo(x + 3, y + 3); pen.moveTo(x + 3, y - 3); pen.lineTo(x - 3, y + 3); }],
};
const GRAVITY = Object.keys(GLYPHS), GRAVEST_FIRST = [...GRAVITY].reverse();

// What a node observed is told apart from a call whose outcome nobody knows.
function glyphOf(chart, lane, at) {
  if (lane.role === "nemesis") return "nemesis";
  if (chart.kind[at] === 3) return chart.mate[at] < 0 ? "observed" : "unknown";
  return TYPES[chart.kind[at]];
}

// How close events of a lane are drawn, in pixels: of those that are closer the gravest
// stands for its neighbours.
const SPOT = 4;

// One outline for all events of a kind, and one for all calls that end alike.
function drawEvents(chart, lane, track) {
  const middle = lane.y + track.top + track.height / 2;
  const pixel = (view.to - view.from) / Math.max(view.width - GUTTER, 1);
  const glyphs = {}, calls = {};
  const pen = (pens, kind) => pens[kind] || (pens[kind] = new Path2D());
  for (const [longest, begun] of track.calls) {
    // All of these are too short to be seen.
    if (longest < 3 * pixel) continue;
    const covered = {};
    for (let i = firstAt(chart, begun, view.from - longest); i < begun.length; i++) {
      const at = begun[i], end = chart.mate[at];
      if (chart.time[at] > view.to) break;
      const x = Math.max(xOf(chart.time[at]), GUTTER - 9), until = Math.min(xOf(chart.time[end]), view.width + 9);
      const kind = glyphOf(chart, lane, end);
      if (until - x < 3 || until <= (covered[kind] || GUTTER)) continue;
      covered[kind] = until;
      const line = pen(calls, kind);
      line.moveTo(x, middle); line.lineTo(until, middle);
    }
  }
  const taken = new Uint8Array(Math.ceil(view.width / SPOT) + 8);
  for (const kind of GRAVEST_FIRST) {
    const places = track.glyphs[kind] || [];
    for (let i = firstAt(chart, places, timeAt(GUTTER - 9)); i < places.length;) {
      const x = xOf(chart.time[places[i]]), spot = Math.round(x / SPOT);
      if (x > view.width + 9) break;
      if (!taken[spot]) GLYPHS[kind][2](pen(glyphs, kind), x, middle);
      taken[spot] = 1;
      i = nextAt(chart, places, i, timeAt(SPOT * (spot + 0.5)));
    }
  }
  for (const kind of Object.keys(calls)) {
    ink.strokeStyle = palette[GLYPHS[kind][0]];
    ink.setLineDash(kind === "unknown" ? [3, 3] : kind === "fail" ? [8, 2] : []);
    ink.stroke(calls[kind]);
  }
  ink.setLineDash([]);
  for (const kind of GRAVITY) {
    if (!glyphs[kind]) continue;
    const [colour, filled] = GLYPHS[kind];
    ink.strokeStyle = ink.fillStyle = palette[colour];
    if (filled) ink.fill(glyphs[kind]); else ink.stroke(glyphs[kind]);
  }
  // Never below anything else.
  for (const at of chart.evidence) {
    if (chart.lane[at] === lane.place) ring(chart, at, middle);
  }
}

function ring(chart, at, middle) {
  const x = xOf(chart.time[at]), wrong = chart.culprits.has(at);
  if (x < GUTTER - 8 || x > view.width + 8) return;
  ink.strokeStyle = wrong ? palette.bad : palette.text;
  ink.lineWidth = wrong ? 3 : 1.5;
  ink.beginPath();
  ink.arc(x, middle, wrong ? 8 : 6, 0, 7);
  ink.stroke();
  ink.lineWidth = 1;
}

// The moments that concern every lane: the violations, calm, the chosen event.
function drawMoments(chart, bottom) {
  const rule = (time, colour, text, dash, row) => {
    const x = xOf(time);
    if (x < GUTTER || x > view.width) return;
    ink.strokeStyle = colour;
    ink.setLineDash(dash);
    ink.beginPath(); ink.moveTo(x, AXIS); ink.lineTo(x, bottom); ink.stroke();
    ink.setLineDash([]);
    if (!text) return;
    ink.font = "bold 12px system-ui, sans-serif";
    // At its line, on the side that has room for it.
    const wide = widthOf("▲ " + text), before = x + wide + 10 > view.width;
    const left = before ? x - wide - 4 : x + 4, y = bottom - 10 - row * 16;
    ink.fillStyle = palette.ground;
    ink.fillRect(left - 2, y - 8, wide + 4, 16);
    ink.fillStyle = colour;
    ink.fillText(before ? text + " ▲" : "▲ " + text, left, y);
  };
  if (chosen >= 0) rule(chart.time[chosen], palette.focus, "", [4, 4], 0);
  chart.violations.forEach((check, row) => {
    if (check.culprit >= 0) rule(chart.time[check.culprit], palette.bad, check.check, [], row % 6);
  });
}

function drawAxis(chart) {
  ink.fillStyle = palette.ground;
  ink.fillRect(0, 0, view.width, AXIS);
  ink.strokeStyle = palette.line;
  ink.beginPath(); ink.moveTo(0, AXIS - 0.5); ink.lineTo(view.width, AXIS - 0.5); ink.stroke();
  ink.fillStyle = palette.faint;
  ink.font = "11px system-ui, sans-serif";
  const rough = ((view.to - view.from) / Math.max(view.width - GUTTER, 1)) * 110;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= rough);
  const first = Math.ceil((chart.start + view.from) / step) * step - chart.start;
  for (let time = first; time <= view.to; time += step) {
    const x = xOf(time);
    ink.beginPath(); ink.moveTo(x, AXIS - 6); ink.lineTo(x, AXIS); ink.stroke();
    ink.fillText(seconds(chart, time), x + 3, 10);
  }
}
