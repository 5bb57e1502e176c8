"""The API of a header as Markdown, from its declarations and the comments above them.

The header's first comment becomes the introduction. A struct or an enum of the namespace that has a comment,
above or inside, is shown whole, a class with the signatures of its public members that have one. Private
members, kernels and functions of the namespace are no part of an API and left out.
"""

import re


def comment_text(lines):
    """The lines of a // comment as Markdown: what is indented by three or more is code."""
    text = []
    for line in lines:
        body = re.sub(r"^\s*// ?", "", line)
        text.append(re.sub(r"^ {2,3}(?=\S)", "    ", body))
    return "\n".join(text)


def blocks(lines):
    """Pairs of a comment's lines and the lines of the declaration below it, up to its last brace or semicolon."""
    comment, position = [], 0
    while position < len(lines):
        line = lines[position]
        if line.lstrip().startswith("//"):
            comment.append(line)
            position += 1
            continue
        if not line.strip() or line.startswith(("#", "namespace ")):
            comment = []
            position += 1
            continue
        start, depth = position, 0
        while True:
            code = re.sub(r"//.*", "", lines[position])
            depth += code.count("{") + code.count("(") - code.count("}") - code.count(")")
            position += 1
            if depth <= 0 and re.search(r"[;}:]\s*$", code) or position == len(lines):
                break
        yield comment, lines[start:position]
        comment = []


def signature(declaration):
    """A member function's declaration without its body and indentation; a comment behind it stays."""
    note = re.search(r"\s*//.*", declaration[-1]) if len(declaration) == 1 else None
    text = "\n".join(re.sub(r"\s*//.*", "", line) for line in declaration)
    depth = 0
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "{" and depth == 0:
            text = text[:position].rstrip() + ";" + (note[0] if note else "")
            break
    return re.sub(r"^  ", "", text, flags=re.MULTILINE)


def name_of(declaration):
    return re.search(r"(~?\w+)\(", declaration)[1] if "(" in declaration else ""


def members(body):
    """The public members of a class, as Markdown: a heading, the signature, the comment."""
    public = body[next(i for i, line in enumerate(body) if line.strip() == "public:") + 1 :]
    public = public[: next(i for i, line in enumerate(public) if line.strip() == "private:")]
    text = ""
    for comment, declaration in blocks(public):
        code = signature(declaration)
        if comment:
            text += f"### {name_of(code)}\n\n```cuda\n{code}\n```\n\n{comment_text(comment)}\n\n"
        elif text:  # belongs to the one above
            text += f"```cuda\n{code}\n```\n\n"
    return text


def api_page(header):
    """The page of a header file."""
    lines = header.read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(lines) if not line.startswith("//"))
    text = f"# {header.name}\n\n{comment_text(lines[:first])}\n\n"
    for comment, declaration in blocks(lines[first:]):
        kind = re.search(r"^(struct|enum class|class) (\w+) .*\{", "\n".join(declaration[:2]), re.MULTILINE)
        if not kind or not (comment or any("//" in line for line in declaration)):
            continue
        text += f"## {kind[2]}\n\n{comment_text(comment)}\n\n"
        text += members(declaration) if kind[1] == "class" else "```cuda\n" + "\n".join(declaration) + "\n```\n\n"
    return text
