const specs = JSON.parse(document.getElementById("json-specs").textContent), dark = matchMedia("(prefers-color-scheme: dark)");
function paint(inDark) {
  const [ink, grid] = inDark ? ["#c8ced6", "#2c323b"] : ["#374151", "#e2e5ea"];
  const words = {labelColor: ink, titleColor: ink};
  const config = {axis: {...words, gridColor: grid, domainColor: grid, tickColor: grid}, legend: words, header: words, title: {color: ink}};
  for (const [name, {config: own, ...rest}] of Object.entries(specs)) {
    const merged = {...own};
    for (const [key, value] of Object.entries(config)) merged[key] = {...(own || {})[key], ...value};
    vegaEmbed("#chart-" + name, {...rest, config: merged}, {actions: false, renderer: "svg"}).catch(e => {
      document.getElementById("chart-" + name).textContent = "This chart could not be drawn: " + e;
    });
  }
}
paint(dark.matches);
dark.addEventListener("change", () => paint(dark.matches));
// On paper: light, and everything that the reader has unfolded or not.
addEventListener("beforeprint", () => { document.querySelectorAll("details").forEach(d => { d.open = true; }); if (dark.matches) paint(false); });
addEventListener("afterprint", () => { if (dark.matches) paint(true); });
