"""The page's frame and its style: light, readable on a phone and in print, no outside resource."""

from string import Template

__all__ = ["PAGE", "STYLE"]

PAGE = Template("""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>$title</title>
<style>
$style</style>
</head>
<body>
<header>
<h1>$title</h1>
$summary
$tiles
</header>
<main>
$sections
</main>
<footer>Made by tampl $version.</footer>
</body>
</html>
""")

STYLE = """\
:root { color-scheme: light; --ink: #262626; --soft: #66696d; --rule: #dcdcd8; --mark: #b34700; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 3rem; max-width: 56rem; background: #fff;
  color: var(--ink); font: 1.05rem/1.55 Charter, "Bitstream Charter", "Source Serif 4",
  "STIX Two Text", Georgia, serif; overflow-wrap: break-word; }
h1 { margin: 0 0 .4rem; font-size: 2rem; line-height: 1.2; font-weight: 600; }
h2 { margin: 3rem 0 1rem; padding-top: .8rem; border-top: 1px solid var(--rule);
  font-size: 1.35rem; line-height: 1.3; font-weight: 600; }
h3 { margin: 0 0 .5rem; font-size: 1rem; font-weight: 600; }
p { margin: 0 0 1rem; max-width: 44rem; }
.lead { font-size: 1.15rem; color: var(--soft); }
.tiles { display: flex; flex-wrap: wrap; gap: .9rem 2.6rem; margin: 1.4rem 0 0; padding: 0; }
.tiles div { margin: 0; }
.tiles dt { color: var(--soft); font-size: .9rem; }
.tiles dd { margin: 0; font-size: 1.6rem; line-height: 1.25;
  font-variant-numeric: lining-nums tabular-nums; }
.tiles div:first-child dd { color: var(--mark); }
.groups { display: grid; gap: 1.8rem 2rem; margin: 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 11.5rem), 1fr)); }
.facts { margin: 0; font-size: .95rem; }
.facts div { display: flex; justify-content: space-between; gap: 1.2rem; padding: .22rem 0;
  border-bottom: 1px solid #efefec; }
.facts dt { color: var(--soft); max-width: 75%; }
.facts dd { margin: 0; text-align: right; min-width: 0; font-variant-numeric: lining-nums; }
.facts.plain { max-width: none; }
.facts.plain div { justify-content: flex-start; }
.facts.plain dt { flex: 0 0 9rem; max-width: 40%; }
.facts.plain dd { text-align: left; font: .85rem/1.7 ui-monospace, "SF Mono", Menlo, Consolas,
  "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: 0 0 1rem; }
table { border-collapse: collapse; border-top: 2px solid var(--ink);
  border-bottom: 2px solid var(--ink); font-variant-numeric: lining-nums tabular-nums; }
th, td { padding: .34rem 1.1rem; text-align: right; font-weight: 400; white-space: nowrap; }
th:first-child { text-align: left; padding-left: .2rem; }
thead th { border-bottom: 1px solid var(--ink); color: var(--soft); }
td.soft { color: var(--soft); }
tr.strong > * { font-weight: 600; }
.remarks { margin: 0 0 1rem; padding-left: 1.2rem; color: var(--mark); font-size: .95rem; }
tr:not(.baseline) + .baseline > * { border-top: 1px solid var(--rule); }
figure { margin: 0 0 2rem; }
img { display: block; width: 100%; height: auto; }
figcaption, .note { margin-top: .6rem; max-width: 44rem; color: var(--soft); font-size: .95rem; }
figure.narrow img { max-width: 40rem; }
footer { margin-top: 3rem; padding-top: .8rem; border-top: 1px solid var(--rule);
  color: var(--soft); font-size: .9rem; }
@media (max-width: 36rem) {
  body { padding: 1.4rem 1rem 2rem; font-size: 1rem; }
  h1 { font-size: 1.6rem; }
  th, td { padding: .3rem .45rem; font-size: .88rem; }
  tbody th { white-space: normal; }
  .groups { gap: 1.4rem; }
  figure img { min-width: 40rem; }
  .tiles { gap: .8rem 1.6rem; } .tiles dd { font-size: 1.3rem; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  h2 { break-after: avoid; margin-top: 1.6rem; }
  figure, table, .facts { break-inside: avoid; }
}
"""
