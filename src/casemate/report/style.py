"""The style sheet of every page: one palette, for light, for dark and for paper."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fdfdfc; --ink: #1d2530; --muted: #586473; --line: #e4e7ea; --wash: #f3f5f6;
  --plain: #2e6f9e; --soft: #9cc3de; --strong: #c2410c; --other: #6b7a3a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14181d; --ink: #e7eaee; --muted: #9aa5b1; --line: #2b323a; --wash: #1c2228;
    --plain: #74b3dd; --soft: #4f86ab; --strong: #ff9666; --other: #b4c46c;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  font-variant-numeric: tabular-nums;
}
main { max-width: 60rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
.kind { margin: 0; color: var(--muted); font-size: 0.85rem; letter-spacing: 0.04em; }
h1 {
  margin: 0.25rem 0 0.75rem; font-size: 1.75rem; line-height: 1.25; font-weight: 650;
  text-wrap: balance;
}
h2 { margin: 0 0 0.5rem; font-size: 1.15rem; font-weight: 650; }
section { margin-top: 2.75rem; }
p { margin: 0.5rem 0; max-width: 46rem; }
a { color: var(--plain); text-decoration-thickness: 0.06em; text-underline-offset: 0.15em; }
.note, .more, figcaption, footer { color: var(--muted); font-size: 0.9rem; }
.facts { display: flex; flex-wrap: wrap; gap: 0.5rem 2.25rem; margin: 1.25rem 0 0; }
.facts div { display: flex; flex-direction: column-reverse; }
.facts dt { color: var(--muted); font-size: 0.85rem; }
.facts dd { margin: 0; font-size: 1.35rem; font-weight: 600; line-height: 1.3; }
.scroll { overflow-x: auto; }
.scroll:focus-visible { outline: 2px solid var(--plain); outline-offset: 3px; }
figure { margin: 1rem 0 0; }
figcaption { max-width: 46rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
caption { text-align: left; color: var(--muted); padding-bottom: 0.35rem; }
th, td {
  text-align: left; vertical-align: top; padding: 0.4rem 1rem 0.4rem 0;
  border-top: 1px solid var(--line);
}
thead th { border-top: 0; color: var(--muted); font-weight: 500; }
tbody th { font-weight: 600; white-space: nowrap; }
tr:target { background: var(--wash); }
code {
  font: 0.92em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  overflow-wrap: anywhere;
}
pre { margin: 0; white-space: pre-wrap; }
td > code, td > pre { display: block; min-width: 16rem; }
ul { padding-left: 1.2rem; margin: 0.5rem 0; }
svg { display: block; }
svg text { fill: var(--muted); font-size: 12px; }
svg text.value { fill: var(--ink); }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .axis { stroke: var(--muted); stroke-width: 1; }
svg .soft { fill: var(--soft); }
svg .plain { fill: var(--plain); }
svg .strong { fill: var(--strong); }
svg .other { fill: var(--other); }
svg .curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
svg .curve.soft { stroke: var(--soft); }
svg .curve.plain { stroke: var(--plain); }
svg .curve.strong { stroke: var(--strong); }
svg .curve.other { stroke: var(--other); }
footer { margin-top: 3rem; border-top: 1px solid var(--line); }
@media print {
  :root {
    color-scheme: light;
    --paper: #fff; --ink: #000; --muted: #444; --line: #ccc; --wash: #fff;
    --plain: #2e6f9e; --soft: #9cc3de; --strong: #c2410c; --other: #6b7a3a;
  }
  main { max-width: none; padding: 0; }
  .scroll { overflow: visible; }
  svg { max-width: 100%; height: auto; }
  a { color: inherit; text-decoration: none; }
  figure, tr, h2 { break-inside: avoid; }
  h2, caption { break-after: avoid; }
}
"""
