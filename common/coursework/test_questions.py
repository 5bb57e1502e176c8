"""Tests of the questions' formats; make test-questions runs their commands."""

import re
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path
from unittest import mock

import questions
from questions import Question, QuestionError

INI = """
[DEFAULT]
spmv = spmv
[number]
topic = 1 A
text = How many rows has {n}?
n = 3, 4, 5
command = {spmv} {n}
answer = (\\d+) rows
is = n
why = It is n.
[choice]
topic = 2 B
text = Which of a < b and {x} is right?
command = {spmv}
options =
    the rows :: \\d+ rows
    the columns :: columns
"""


class Questions(unittest.TestCase):
    def sections(self, text=INI):
        parser = questions.configparser.ConfigParser(interpolation=None)
        parser.read_string(text)
        return parser, dict(parser.defaults())

    def make(self, name, output, text=INI, seed=1):
        with mock.patch.object(questions, "run", lambda command: output):
            return questions.make(*self.sections(text), name, seed)

    def test_an_answer_is_what_the_command_prints_and_the_formula_says(self):
        question = self.make("number", "3 rows")
        asked = (question.text, question.command, question.answer())
        self.assertEqual(asked, ("How many rows has 3?", "spmv 3", "3"))
        with self.assertRaisesRegex(QuestionError, "it prints 4.0, the formula says 3"):
            self.make("number", "4 rows")
        with self.assertRaisesRegex(QuestionError, r"no \(\\d\+\) rows"):
            self.make("number", "nothing")
        self.assertEqual(self.make("choice", "7 rows").answer(), "the rows")
        for output in ("", "7 rows and columns"):
            with self.assertRaisesRegex(QuestionError, "are right"):
                self.make("choice", output)

    def test_seeds_draw_other_numbers(self):
        drawn = {questions.chosen("number", {"n": [3, 4, 5]}, seed)["n"] for seed in range(1, 20)}
        self.assertEqual(drawn, {3, 4, 5})
        self.assertEqual(questions.chosen("number", {"n": [3, 4, 5]}, 1)["n"], 3)

    def test_numbers_of_a_puzzle_are_its_own(self):
        source = (questions.ROOT / "common/primer/puzzles/08_histogram.cu").read_text()
        n = questions.numbers_of("08_histogram")["n"]
        self.assertIn(f"const int n = {n},", source)
        self.assertIn("{n}", questions.read()[0]["atomic_requests"]["text"])

    def test_formats(self):
        four = "number", "1 A", "Is {n} = 3?", "f<4>();", "spmv", "Yes: n."
        choice = Question("choice", "2 B", "a < b?", "", "spmv", "No.")
        choice.options = [("x = y", False), ("x ~ y & z", True)]
        found = [Question(*four, tolerance=2, number=4), choice]
        text = questions.gift(found)
        self.assertIn("$CATEGORY: SpMV on GPUs/2 B", text)
        self.assertIn(r"::number::[html]<p>Is \{n\} \= 3?</p><pre>f&lt;4&gt;();</pre> {", text)
        self.assertIn("  #4:0.08\n", text)
        self.assertIn("  ~x \\= y\n  =x \\~ y &amp; z\n", text)
        with tempfile.TemporaryDirectory() as scratch:
            questions.write(found, 1, Path(scratch))
            with zipfile.ZipFile(Path(scratch) / "questions_qti.zip") as archive:
                self.assertEqual(archive.namelist(), ["imsmanifest.xml", "questions.xml"])
                every = ElementTree.fromstring(archive.read("questions.xml"))
                items = list(every.iter("{http://www.imsglobal.org/xsd/ims_qtiasiv1p2}item"))
                ElementTree.fromstring(archive.read("imsmanifest.xml"))
        self.assertEqual([item.get("ident") for item in items], ["number", "choice"])
        texts = ["".join(item.itertext()) for item in items]
        self.assertIn("numerical_question", texts[0])
        self.assertIn("3.92", texts[0])
        self.assertIn("x ~ y &amp; z", texts[1])  # HTML within XML

    def test_there_are_seventy(self):
        sections, common = questions.read()
        self.assertEqual(len(sections.sections()), 70)
        for name in sections.sections():
            with self.subTest(name):
                section = sections[name]
                self.assertEqual("answer" in section, "options" not in section)
                self.assertRegex(section["topic"], r"^[1-8] ")
                self.assertTrue(section.get("why"))
                if "body" in section:
                    self.assertIn("{code}", section["text"])
                named = set(re.findall(r"\{(\w+)\}", section["text"])) - {"code"}
                puzzle = section.get("body", "08_histogram 0").split()[0]
                self.assertLessEqual(named, {*section, *questions.numbers_of(puzzle)})


class Answers(unittest.TestCase):
    def test_every_question_of_a_step_has_its_answer(self):
        answers = questions.ROOT / "common/coursework/answers.md"
        steps = re.findall(r"(?ms)^## Step (\d\d)\n(.*?)(?=^## |\Z)", answers.read_text())
        given, asked = {step: numbered(text) for step, text in steps}, {}
        for page in questions.ROOT.glob("[01][0-9]_*/**/*.md"):
            for text in re.findall(r"(?ms)^## Questions\n(.*?)(?=^## |\Z)", page.read_text()):
                step = page.relative_to(questions.ROOT).parts[0][:2]
                asked[step] = asked.get(step, 0) + len(numbered(text))
        self.assertEqual({step: list(range(1, count + 1)) for step, count in asked.items()}, given)


def numbered(text):
    return [int(number) for number in re.findall(r"^(\d+)\. ", text, re.M)]


if __name__ == "__main__":
    unittest.main()
