#!/usr/bin/env python3
"""Questions for quizzes and exams, with answers that commands prove: make questions [SEED=n]

    questions.py [--seed N]   writes questions.gift (Moodle), questions_qti.zip (Canvas) and answers.md to build/questions,
                              or exits with 1 if a command does not prove its answer

questions.ini holds the questions, with parameters; a seed chooses their values, so that last year's answers do not
help. Each answer is taken from what its command prints, and must agree with the formula that stands beside it.
"""

import argparse
import configparser
import functools
import hashlib
import itertools
import math
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "common/primer"), str(ROOT / "common/primer/tests")]

from bodies import bodies  # noqa: E402

OWN = ("topic", "text", "command", "answer", "is", "options", "body", "why", "times", "tolerance")
FUNCTIONS = dict(ceil=math.ceil, gcd=math.gcd, log2=math.log2, min=min, len=len, range=range)


class QuestionError(Exception):
    """A question that is not well-formed, or whose command does not prove its answer; the text names it."""


@dataclass
class Question:
    name: str
    topic: str
    text: str
    code: str
    command: str
    why: str
    tolerance: float = 0  # in per cent
    number: float | None = None
    options: list = field(default_factory=list)  # (text, whether it is right)

    def answer(self):
        right = (text for text, is_right in self.options if is_right)
        return next(right) if self.options else shown(self.number)


def shown(number):
    return f"{number:.6g}" if abs(number - round(number)) > 1e-9 else str(round(number))


def chosen(name, parameters, seed):
    """A value for each parameter: another seed, another combination. Seed 1 takes the first of all."""
    combinations = list(itertools.product(*parameters.values()))
    digest = int.from_bytes(hashlib.sha256(f"{name} {seed}".encode()).digest()[:8], "big")
    return dict(zip(parameters, combinations[digest % len(combinations) if seed != 1 else 0]))


def evaluate(formula, values):
    """A formula of questions.ini, which is this repository's own."""
    return eval(formula, {"__builtins__": {}, **FUNCTIONS, **values})  # noqa: S307


def numbers_of(puzzle):
    """{name: number} that the host's part of a puzzle sets."""
    text = (ROOT / f"common/primer/puzzles/{puzzle}.cu").read_text(encoding="utf-8")
    return {name: int(number) for name, number in re.findall(r"\b(\w+) = (\d+)(?=[,;])", text)}


@functools.cache
def run(command):
    """What a command prints; the same one is run once."""
    how = {"cwd": ROOT, "capture_output": True, "text": True}
    done = subprocess.run(["bash", "-c", command], timeout=120, **how)
    return done.stdout + done.stderr


def read():
    """The sections of questions.ini, and what all of them may name."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "common/coursework/questions.ini", encoding="utf-8")
    return parser, dict(parser.defaults())


def make(parser, common, name, seed):
    """A question, with its answer from what its command prints. Raises QuestionError."""
    section = {key: value for key, value in parser[name].items() if key not in common}
    parameters = {key: value for key, value in section.items() if key not in OWN}
    parameters = {key: list(map(int, value.split(","))) for key, value in parameters.items()}
    values = chosen(name, parameters, seed)
    code = ""
    if "body" in section:
        puzzle, number = section["body"].split()
        code = bodies()[puzzle][int(number)][1].rstrip()
        values = {**numbers_of(puzzle), **values}
    named = {**common, **values, "code": ""}

    def filled(key):
        text = section.get(key, "")
        return re.sub(r"\{(\w+)\}", lambda m: str(named.get(m[1], m[0])), text).strip()

    text = filled("text").replace("\\n", "")
    question = Question(name, section["topic"], text, code, filled("command"), filled("why"))
    output = run(question.command)
    problem = f"{name}, seed {seed}: {question.command}\n{output[-1500:]}\n"
    if "options" in section:
        for line in section["options"].strip().splitlines():
            text, pattern = line.rsplit(" :: ", 1)
            is_right = re.search(pattern.strip(), output) is not None
            question.options.append((text.strip(), is_right))
        drawn = lambda option: hashlib.sha256(f"{seed} {option[0]}".encode()).digest()  # noqa: E731
        question.options.sort(key=drawn)
        right = [text for text, is_right in question.options if is_right]
        if len(right) != 1:
            raise QuestionError(f"{problem}{right} are right")
        return question
    found = re.search(filled("answer"), output)
    if not found:
        raise QuestionError(f"{problem}no {filled('answer')}")
    numbers = [float(group) for group in found.groups()]
    question.tolerance = float(section.get("tolerance", 0))
    question.number = numbers[0] * evaluate(section.get("times", "1"), values)
    question.number /= numbers[1] if len(numbers) == 2 else 1
    if "is" in section:
        expected = evaluate(section["is"], values)
        if abs(question.number - expected) > max(1e-9, question.tolerance / 100 * abs(expected)):
            says = f"it prints {question.number}, the formula says {expected}"
            raise QuestionError(f"{problem}{says}")
    return question


# --- Formats --------------------------------------------------------------------------------------


def html(question):
    code = f"<pre>{escape(question.code)}</pre>" if question.code else ""
    return f"<p>{escape(question.text)}</p>{code}"


def spread(question):
    return question.tolerance / 100 * abs(question.number)


def gift(questions):
    """Moodle's format: https://docs.moodle.org/en/GIFT_format"""

    def plain(text):
        return re.sub(r"([\\~=#{}:])", r"\\\1", text).replace("\n", "\\n")

    parts = []
    for topic, group in itertools.groupby(questions, key=lambda question: question.topic):
        parts.append(f"$CATEGORY: SpMV on GPUs/{topic}\n")
        for q in group:
            answers = [f"  {'~='[right]}{plain(escape(text))}\n" for text, right in q.options]
            answers = "".join(answers) or f"  #{shown(q.number)}:{spread(q):.6g}\n"
            why = f"  ####{plain(escape(q.why))}"
            parts.append(f"::{q.name}::[html]{plain(html(q))} {{\n{answers}{why}\n}}\n")
    return "\n".join(parts)


QTI_LABEL = """<response_label ident="{}"><material><mattext texttype="text/html">{}</mattext></material></response_label>"""
QTI_CHOICE = """<response_lid ident="response1" rcardinality="Single"><render_choice shuffle="Yes">{}</render_choice></response_lid>"""
QTI_NUMBER = """<response_str ident="response1" rcardinality="Single"><render_fib fibtype="Decimal">
<response_label ident="answer1"/></render_fib></response_str>"""
QTI_WITHIN = """<or><varequal respident="response1">{:.9g}</varequal><and><vargte respident="response1">{:.9g}</vargte>
<varlte respident="response1">{:.9g}</varlte></and></or>"""
QTI_MANIFEST = """<manifest identifier="spmv" xmlns="http://www.imsglobal.org/xsd/imscp_v1p1"><organizations/><resources>
<resource identifier="questions" type="imsqti_xmlv1p2"><file href="questions.xml"/></resource></resources></manifest>
"""
QTI_ALL = """<questestinterop xmlns="http://www.imsglobal.org/xsd/ims_qtiasiv1p2"><assessment ident="spmv" title="SpMV on GPUs">
<section ident="root_section">
{}</section></assessment></questestinterop>
"""
QTI_ITEM = """\
<item ident="{name}" title="{name}"><itemmetadata><qtimetadata><qtimetadatafield><fieldlabel>question_type</fieldlabel>
<fieldentry>{kind}_question</fieldentry></qtimetadatafield><qtimetadatafield><fieldlabel>points_possible</fieldlabel><fieldentry>1</fieldentry>
</qtimetadatafield></qtimetadata></itemmetadata>
<presentation><material><mattext texttype="text/html">{text}</mattext></material>{response}</presentation>
<resprocessing><outcomes><decvar maxvalue="100" minvalue="0" varname="SCORE" vartype="Decimal"/></outcomes>
<respcondition continue="Yes"><conditionvar><other/></conditionvar><displayfeedback feedbacktype="Response" linkrefid="general_fb"/>
</respcondition><respcondition continue="No"><conditionvar>{condition}</conditionvar><setvar action="Set" varname="SCORE">100</setvar>
</respcondition></resprocessing>
<itemfeedback ident="general_fb"><flow_mat><material><mattext texttype="text/html">{why}</mattext></material></flow_mat></itemfeedback></item>
"""


def qti(questions):
    """QTI 1.2, as Canvas imports it: {file of the zip: text}."""
    items = []
    for q in questions:
        if q.options:
            texts = (escape(escape(text)) for text, _ in q.options)
            labels = [QTI_LABEL.format(i, text) for i, text in enumerate(texts)]
            right = [is_right for _, is_right in q.options].index(True)
            kind, response = "multiple_choice", QTI_CHOICE.format("".join(labels))
            condition = f'<varequal respident="response1">{right}</varequal>'
        else:
            least, most = q.number - spread(q), q.number + spread(q)
            kind, response = "numerical", QTI_NUMBER
            condition = QTI_WITHIN.format(q.number, least, most)
        texts = {"text": escape(html(q)), "response": response, "why": escape(escape(q.why))}
        items.append(QTI_ITEM.format(name=q.name, kind=kind, condition=condition, **texts))
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    all_ = QTI_ALL.format("".join(items))
    return {"imsmanifest.xml": head + QTI_MANIFEST, "questions.xml": head + all_}


def key(questions, seed):
    """The answers, for the instructor."""
    lines = [f"# Answers, seed {seed}", ""]
    for q in questions:
        code = f"\n```cpp\n{q.code}\n```\n" if q.code else ""
        within = f" (within {q.tolerance:g}%)" if q.tolerance else ""
        lines += [f"## {q.name}\n", q.text, code, f"**{q.answer()}**{within} {q.why}"]
        lines += [f"\n    {q.command}\n"]
    return "\n".join(lines)


def write(questions, seed, directory):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "questions.gift").write_text(gift(questions), encoding="utf-8")
    (directory / "answers.md").write_text(key(questions, seed), encoding="utf-8")
    with zipfile.ZipFile(directory / "questions_qti.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in qti(questions).items():
            archive.writestr(zipfile.ZipInfo(name), text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    seed = parser.parse_args().seed
    sections, common = read()
    questions, failed = [], 0
    for name in sections.sections():
        try:
            questions.append(make(sections, common, name, seed))
        except (QuestionError, subprocess.TimeoutExpired, KeyError, ValueError) as error:
            said = repr(error) if isinstance(error, (KeyError, ValueError)) else error
            print(f"FAILED {said}", file=sys.stderr)
            failed += 1
    print(f"{len(questions)} passed, {failed} failed")
    if not failed:
        write(questions, seed, ROOT / "build/questions")
        files = "questions.gift for Moodle, questions_qti.zip for Canvas, answers.md for you"
        print(f"{ROOT}/build/questions: {files}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
