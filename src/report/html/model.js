"use strict";
// What the page knows: the chart that it carries, packed, and where everything is drawn.

const TYPES = ["invoke", "ok", "fail", "info"];

async function unpack() {
  const text = document.getElementById("data").textContent.trim();
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return chartOf(JSON.parse(await new Response(stream).text()));
}

function chartOf(packed) {
  const points = packed.points, count = points.index.length;
  const chart = {
    ...packed, count,
    index: summed(points.index), time: summed(points.time),
    lane: Uint32Array.from(points.lane), f: Uint32Array.from(points.f),
    kind: Uint8Array.from(points.kind), mate: new Int32Array(count).fill(-1),
    said: packed.said.split("\n"), json: packed.json.split("\n"),
  };
  points.mate.forEach((ahead, at) => {
    if (ahead > 0) { chart.mate[at] = at + ahead; chart.mate[at + ahead] = at; }
  });
  chart.length = Math.max(chart.to - chart.from, 1);
  chart.spans = packed.spans.map(([lane, what, from, to, label, event, lease]) =>
    ({ lane, what: packed.conditions[what], from, to, label, event, lease }));
  chart.violations = packed.checks.filter((check) => check.verdict === "violated");
  chart.culprits = new Set(chart.violations.map((check) => check.culprit));
  chart.evidence = new Set(chart.violations.flatMap((check) => check.evidence));
  const spans = packed.lanes.map(() => []), places = packed.lanes.map(() => []);
  for (const span of chart.spans) spans[span.lane].push(span);
  chart.lane.forEach((lane, at) => places[lane].push(at));
  chart.lanes = packed.lanes.map(([name, role, shown], place) =>
    ({ ...laneOf(name, role, place, spans[place], places[place]), shown }));
  const beliefs = chart.lanes.flatMap((lane) => lane.tracks.filter((track) => track.key[0] === "0"));
  // The only lease that there is needs no name.
  if (new Set(beliefs.map((track) => track.key)).size < 2) beliefs.forEach((track) => { track.label = ""; });
  return chart;
}

function summed(steps) {
  const sums = new Float64Array(steps.length);
  let sum = 0;
  steps.forEach((step, at) => { sum += step; sums[at] = sum; });
  return sums;
}

// A lane has a track for each lease that it led, one for its events, and one for each
// group of conditions that befell it.
const GROUPS = {
  "down": "process", "paused": "process", "suspended": "process", "starved": "process",
  "slow or lossy links": "links", "slow or full disk": "disk", "clock off its rate": "clock",
};

function laneOf(name, role, place, spans, points) {
  const tracks = new Map();
  for (const span of spans) {
    const belief = span.what === "believes to lead";
    const group = belief ? span.lease : GROUPS[span.what] || span.what;
    const key = (belief ? "0" : "2") + group;
    if (!tracks.has(key)) {
      tracks.set(key, { key, label: group, height: belief ? 20 : 14, spans: [] });
    }
    tracks.get(key).spans.push(span);
  }
  tracks.set("1", { key: "1", label: "", height: 18, points: Uint32Array.from(points) });
  const ordered = [...tracks.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  for (const track of ordered) {
    let reach = -Infinity;
    if (track.spans) track.reach = Float64Array.from(track.spans, (span) => (reach = Math.max(reach, span.to)));
  }
  let height = 4;
  for (const track of ordered) { track.top = height; height += track.height + 2; }
  return { name, role, place, tracks: ordered, height: Math.max(height + 4, 34) };
}

// The first of some places whose time is not before.
function firstAt(chart, places, time) {
  let low = 0, high = places.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (chart.time[places[middle]] < time) low = middle + 1; else high = middle;
  }
  return low;
}

// The next of some places after one, whose time is not before: mostly it is near.
function nextAt(chart, places, after, time) {
  let low = after + 1, step = 1;
  while (low + step < places.length && chart.time[places[low + step]] < time) { low += step; step *= 2; }
  let high = Math.min(low + step, places.length);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (chart.time[places[middle]] < time) low = middle + 1; else high = middle;
  }
  return low;
}

// The first bar that may last until a time: all before it are over by then.
function firstThatReaches(track, time) {
  let low = 0, high = track.reach.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (track.reach[middle] < time) low = middle + 1; else high = middle;
  }
  return low;
}

// Sorts what is shown of each lane by how it is drawn, and its calls by how long they last
// (up to so many nanoseconds): a frame looks at hardly more than it draws.
function arrange(chart) {
  for (const lane of chart.lanes) {
    const track = lane.tracks.find((track) => track.points);
    track.glyphs = {};
    track.calls = new Map();
    for (const at of track.points) {
      if (!isShown(chart, at)) continue;
      const glyph = glyphOf(chart, lane, at);
      (track.glyphs[glyph] ||= []).push(at);
      const end = chart.kind[at] === 0 ? chart.mate[at] : -1;
      if (end < 0 || !isShown(chart, end)) continue;
      const longest = 2 ** Math.ceil(Math.log2(Math.max(chart.time[end] - chart.time[at], 1)));
      if (!track.calls.has(longest)) track.calls.set(longest, []);
      track.calls.get(longest).push(at);
    }
  }
}

function seconds(chart, time) {
  const total = (chart.start + time) / 1e9;
  const shown = view.to - view.from;
  const digits = shown < 1e4 ? 9 : shown < 1e7 ? 6 : 3;
  return total.toFixed(digits) + " s";
}
