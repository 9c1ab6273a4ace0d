// Moves what the page shows: each second the numbers and the plot, by the stream of events; now and
// then the rest, which is fetched as the daemon writes it. Without this script the page is loaded
// anew instead.
"use strict";

(() => {
  const REST = 5000;
  const AGAIN = 5000;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const pause = document.getElementById("pause");
  let paused = false;

  const format = (number) => {
    const digits = number < 100 && number % 1 ? 1 : 0;
    return number.toFixed(digits).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
  };

  // The rest: each marked part is replaced by the newest of the same id, unless somebody is in it.
  const renew = async () => {
    if (paused || document.hidden) return;
    const response = await fetch(location.href);
    if (!response.ok || paused) return;
    const newest = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const found = newest.getElementById(part.id);
      if (!found || part.contains(document.activeElement)) continue;
      const before = [...part.querySelectorAll(".wide")].map((table) => table.scrollLeft);
      part.replaceChildren(...found.childNodes);
      part.querySelectorAll(".wide").forEach((table, number) => {
        table.scrollLeft = before[number] || 0;
      });
    }
  };

  // In UTC, as the daemon writes times.
  const clock = (at, from, to) => new Date(at * 1000).toISOString().slice(from, to).replace("T", " ");

  const box = document.getElementById("plot");
  const chart = document.getElementById("chart");
  const state = { shown: null, plot: null, window: "minutes" };

  const colours = () => dark.matches
    ? { line: "#3a434d", text: "#e6e9ed", passed: "#5fd083", dropped: "#ff8a85", mark: "#f0b849",
        others: ["#79b8ff", "#d2a8ff", "#f0b849", "#56d4dd", "#ffa3d7", "#c9d1d9"] }
    : { line: "#d0d7de", text: "#1b1f24", passed: "#1a6e35", dropped: "#b3191f", mark: "#7a5200",
        others: ["#0a58b5", "#7a3fc1", "#7a5200", "#00707d", "#a82a78", "#57606a"] };

  const marks = (colour) => (plot) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = colour;
    ctx.setLineDash([4, 4]);
    for (const { at } of state.shown.incidents) {
      const x = Math.round(plot.valToPos(at, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  };

  const data = () => [state.shown.times, ...state.shown.series.map((one) => one.rates)];

  const draw = () => {
    if (state.plot) state.plot.destroy();
    const { line, text, passed, dropped, mark, others } = colours();
    let next = 0;
    const stroke = ({ name }) =>
      name === "passed" ? passed : name === "dropped" ? dropped : others[next++ % others.length];
    const axis = { stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line } };
    state.plot = new uPlot({
      width: chart.clientWidth,
      height: 260,
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      series: [
        { value: (_, at) => (at == null ? "–" : clock(at, 0, 19)) },
        ...state.shown.series.map((one, number) => ({
          label: one.name,
          stroke: stroke(one),
          width: number < 2 ? 2 : 1,
          points: { show: false },
          value: (_, rate) => (rate == null ? "–" : format(rate)),
        })),
      ],
      axes: [{ ...axis, values: (_, ticks) => ticks.map((at) => clock(at, 11, 19)) }, { ...axis, size: 70, values: (_, ticks) => ticks.map(format) }],
      scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.05)] } },
      hooks: { draw: [marks(mark)] },
    }, data(), chart);
  };

  const load = async () => {
    const response = await fetch(`/history?window=${state.window}`);
    if (!response.ok) return;
    state.shown = await response.json();
    box.hidden = false;
    draw();
  };

  // Adds a second to the plot; a reason that is new to it needs the whole again.
  const add = (second) => {
    const { shown, plot } = state;
    if (!shown || !plot || state.window !== "minutes") return;
    const known = new Set(shown.series.map((one) => one.name));
    const dropped = [...document.querySelectorAll("[data-rate]")]
      .filter((cell) => cell.closest("tr").cells[1].textContent === "drop")
      .map((cell) => cell.dataset.rate);
    if (dropped.some((name) => second.rates[name] && !known.has(name))) {
      load();
      return;
    }
    if (second.at <= shown.times[shown.times.length - 1]) return;
    shown.times.push(second.at);
    for (const one of shown.series) {
      const rate = one.name in second ? second[one.name] : second.rates[one.name];
      one.rates.push(rate || 0);
    }
    while (shown.times.length > 600) {
      shown.times.shift();
      shown.series.forEach((one) => one.rates.shift());
    }
    plot.setData(data());
  };

  const show = (second) => {
    document.getElementById("now").textContent =
      `${format(second.passed)} passed and ${format(second.dropped)} dropped per second`;
    for (const cell of document.querySelectorAll("[data-rate]")) {
      cell.textContent = format(second.rates[cell.dataset.rate] || 0);
    }
    for (const cell of document.querySelectorAll("[data-packets]")) {
      const packets = second.packets[cell.dataset.packets];
      if (packets !== undefined) cell.textContent = format(packets);
    }
    add(second);
  };

  const watch = () => {
    const events = new EventSource("/events");
    events.onmessage = ({ data }) => { if (!paused && !document.hidden) show(JSON.parse(data)); };
    events.onerror = () => {
      if (events.readyState === EventSource.CLOSED) setTimeout(watch, AGAIN);
    };
  };

  const retried = (act) => () => { act().catch(() => {}); };

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
  });
  setInterval(retried(renew), REST);
  if (!chart) return;

  for (const choice of document.querySelectorAll("#window input")) {
    choice.addEventListener("change", () => {
      state.window = choice.value;
      retried(load)();
    });
  }
  dark.addEventListener("change", () => { if (state.shown) draw(); });
  new ResizeObserver(() => {
    if (state.plot && chart.clientWidth) {
      state.plot.setSize({ width: chart.clientWidth, height: 260 });
    }
  }).observe(chart);
  setInterval(() => { if (!paused && !document.hidden) retried(load)(); }, 60000);
  retried(load)();
  watch();
})();
