"""Renders the lectures slides_*.md of this directory: slides.py OUTPUT

Two HTML files per lecture, each complete in itself: the slides, and the same with the speaker's notes. A browser's
print makes a PDF of either.
"""

import subprocess
import sys
from pathlib import Path

import pypandoc

HERE = Path(__file__).resolve().parent


def main():
    output = Path(sys.argv[1])
    output.mkdir(parents=True, exist_ok=True)
    style = output / "style.html"
    style.write_text(f"<style>{(HERE / 'slides.css').read_text(encoding='utf-8')}</style>\n")
    for source in sorted(HERE.glob("slides_*.md")):
        slides, notes = output / f"{source.stem}.html", output / f"{source.stem}_notes.html"
        for page, options in ((slides, ["-t", "dzslides", "-H", style]), (notes, ["-t", "html5"])):
            words = [*options, "-s", "--self-contained", f"--resource-path={HERE}", source]
            command = [pypandoc.get_pandoc_path(), "--quiet", *words, "-o", page]
            if subprocess.run(command).returncode:
                sys.exit(f"error: {source} could not be rendered")
        print(f"{slides}, and with notes {notes.name}")
    style.unlink()


if __name__ == "__main__":
    main()
