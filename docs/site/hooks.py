"""What MkDocs calls while it builds the site (`make docs`).

Every Python block of every page runs. Tutorials and the first page show what their blocks print
and draw, and become notebooks; other pages have examples whose outputs are not shown.
"""

import base64
import re
import sys
from html import escape
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

from blocks import is_python, replace_indented, split_cells
from excerpts import show_excerpts
from execution import Output, run_pages
from mathematics import copy_font, to_mathml
from notebooks import write_notebook
from repository import find_files, relink, show_file, to_uri

ROOT = Path(__file__).parents[2]
STUDIO = ROOT / "src" / "tampl" / "studio" / "page"
FIGURE = re.compile(r"\s*<!-- figure: (.*?) -->\n?", re.DOTALL)
REMOTE = re.compile(
    r"""<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=["']?(?:https?:)?//[^>]*>|@import[^;]*//"""
)

__all__ = ["on_files", "on_page_content", "on_page_markdown", "on_post_build"]

_outputs: dict[str, list[Output]] = {}
_sources: dict[str, str] = {}
_notebooks: dict[str, str] = {}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of linked files and the look, and runs all blocks."""
    pages = {f"docs/{file.src_uri}": file.content_string for file in files.documentation_pages()}
    wanted = [
        file for page, text in pages.items() for file in find_files(page, show_excerpts(text))
    ]
    while wanted:
        file = wanted.pop()
        if to_uri(file) in _sources:
            continue
        _sources[to_uri(file)] = file
        content = show_file(file)
        files.append(File.generated(config, to_uri(file), content=content))
        if file.endswith(".md"):
            pages[file] = content
            wanted += find_files(file, content)
    assets = {
        "assets/site.css": _copy_colours() + Path(__file__).with_name("style.css").read_text(),
        "assets/iframe-worker.js": Path(__file__).with_name("iframe-worker.js").read_text(),
        "assets/icon.svg": (STUDIO / "icon.svg").read_text(),
    }
    for uri, content in assets.items():
        files.append(File.generated(config, uri, content=content))
    try:
        _outputs.update(run_pages(pages))
    except RuntimeError as error:
        raise PluginError(str(error)) from None
    for page in filter(_shows_outputs, pages):
        for number, output in enumerate(_outputs[page]):
            for place, figure in enumerate(output.figures):
                uri = _figure_uri(page.removeprefix("docs/"), number, place)
                content = base64.b64decode(figure)
                files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Puts outputs, code and links of the site into a page."""
    uri = page.file.src_uri
    source = _sources.get(uri, f"docs/{uri}")
    if _shows_outputs(source):
        markdown = _show_outputs(uri, markdown, _outputs[source])
    return relink(source, show_excerpts(replace_indented(markdown, _colour)))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns formulas into MathML, and lets wide tables scroll inside themselves."""
    html = re.sub(r"<table>.*?</table>", r'<div class="wide">\g<0></div>', html, flags=re.DOTALL)
    return to_mathml(html)


def on_post_build(config: MkDocsConfig) -> None:
    """Writes notebooks and the font, and checks that no page asks another host for anything."""
    site = Path(config.site_dir)
    for name, notebook in _notebooks.items():
        (site / name).write_text(notebook, encoding="utf-8")
    copy_font(site / "assets" / "fonts")
    for path in (*site.rglob("*.html"), *site.glob("assets/site.css")):
        if remote := REMOTE.search(path.read_text(encoding="utf-8")):
            raise PluginError(f"{path.relative_to(site)} asks another host: {remote[0][:200]}")


def _colour(code: str) -> str | None:
    # An indented block has no language; Python is told by itself.
    return f"\n```python\n{code}\n```\n" if is_python(code) else None


def _shows_outputs(source: str) -> bool:
    return source == "docs/index.md" or source.startswith("docs/tutorials/")


def _show_outputs(uri: str, markdown: str, outputs: list[Output]) -> str:
    cells = split_cells(markdown)
    if outputs:
        _notebooks[uri.replace(".md", ".ipynb")] = write_notebook(cells, outputs)
    written: list[str] = []
    number, figures = -1, 0
    for cell in cells:
        text = cell.text
        if cell.block is None and figures:
            found = FIGURE.match(text)
            if not found:
                raise PluginError(f"{uri}: a figure needs words, <!-- figure: ... -->, after it")
            shown = [_figure_uri(uri, number, place) for place in range(figures)]
            marks = [f"![{found[1]}]({Path(each).name})" for each in shown]
            text, figures = "\n" + "\n\n".join(marks) + "\n\n" + text[found.end() :], 0
        written.append(text)
        if cell.block is not None:
            number += 1
            output = outputs[number]
            if output.text:
                printed = escape(output.text.rstrip())
                written.append(f'\n<pre class="printed"><code>{printed}</code></pre>\n\n')
            figures = len(output.figures)
    if not outputs:
        return markdown
    name = Path(uri).with_suffix(".ipynb").name
    link = f'<a class="notebook" href="{name}" download>This page as a notebook</a>'
    title, _, rest = "".join(written).partition("\n")
    return f"{title}\n\n{link}\n{rest}"


def _figure_uri(uri: str, block: int, place: int) -> str:
    return f"{uri.removesuffix('.md')}-{block}-{place}.png"


def _copy_colours() -> str:
    """The colours of the studio, so that both have one look."""
    sheet = (STUDIO / "studio.css").read_text(encoding="utf-8")
    light = re.search(r":root \{(.*?)\n\}", sheet, re.DOTALL)
    dark = re.search(r":root\[data-theme=\"dark\"\] \{(.*?)\n\}", sheet, re.DOTALL)
    assert light and dark, "studio.css has no colours"
    return (
        f'[data-md-color-scheme="default"] {{{light[1]}\n}}\n'
        f'[data-md-color-scheme="slate"] {{{light[1]}{dark[1]}\n}}\n'
    )
