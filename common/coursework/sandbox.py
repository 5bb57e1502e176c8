"""Runs a command that is not trusted: bubblewrap, and limits of the kernel.

It sees the system's programs and libraries and the directories that it was given, at their own
paths; it has no network, no other process, no environment, and can write to nothing but what it was
given to write. It has process and user ids of its own, so that its limits are no one else's.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from exercises import NotJudged

NOBODY = 65534
ENVIRONMENT = (
    "PATH=/usr/bin:/bin HOME=/tmp LC_ALL=C.UTF-8 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1"
)
MOST_OUTPUT = 1 << 16  # of what it prints, kept


@dataclass(frozen=True)
class Limits:
    seconds: int = 60  # of the processors' time, so that a busy machine gives the same grades
    bytes: int = 4 << 30  # of memory, a process
    output: int = 16 << 20  # bytes: what it prints, and a file

    def wall_seconds(self):
        """For those that wait and do not work."""
        return 30 + 4 * self.seconds


class Sandbox:
    def __init__(self, trusted=False):
        """trusted: no bubblewrap, limits alone. For submissions that one would run by hand."""
        self.trusted = trusted
        if not trusted and not shutil.which("bwrap"):
            install = "is not installed (apt-get install bubblewrap)"
            rights = "without it submissions would run with your rights. TRUSTED=1 does that"
            raise NotJudged(f"bubblewrap {install}; {rights}")
        if not shutil.which("prlimit"):
            raise NotJudged("prlimit is not installed (apt-get install util-linux)")
        if trusted:
            return
        done = subprocess.run(self.command(["true"]), capture_output=True, text=True)
        if done.returncode != 0:
            here = f"bubblewrap cannot make a sandbox here ({done.stderr.strip()})"
            trusted = "TRUSTED=1 runs submissions with your rights, without one"
            raise NotJudged(f"{here}: are user namespaces allowed? {trusted}")

    def as_nobody(self):
        """Root's rights are not for submissions."""
        return os.geteuid() == 0 and not self.trusted

    def own(self, directory):
        """Gives a directory and what is in it to the user that commands run as."""
        if self.as_nobody():
            for path in [directory, *directory.rglob("*")]:
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    def command(self, command, mounts=(), limits=Limits()):
        """The words that run `command` in here. mounts: (path outside, path inside, whether it may be
        written to) of directories."""
        words = ["prlimit", f"--cpu={limits.seconds}:{limits.seconds + 5}", f"--as={limits.bytes}"]
        words += [f"--fsize={limits.output}", "--core=0", "--"]
        if self.trusted:
            return [*words, *map(str, command)]
        if self.as_nobody():
            words += ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
        words += ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
        for setting in ENVIRONMENT.split():
            words += ["--setenv", *setting.split("=")]
        words += ["--ro-bind", "/usr", "/usr"]
        for name in ("bin", "lib", "lib32", "lib64", "sbin"):
            path = Path("/") / name
            if path.is_symlink():
                words += ["--symlink", os.readlink(path), str(path)]
            elif path.exists():
                words += ["--ro-bind", str(path), str(path)]
        words += ["--ro-bind-try", "/etc/alternatives", "/etc/alternatives"]
        words += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
        words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
        for outside, inside, writable in mounts:
            words += ["--bind" if writable else "--ro-bind-try", str(outside), str(inside)]
        return [*words, "--remount-ro", "/", "--chdir", "/tmp", "--", *map(str, command)]

    def run(self, command, mounts=(), limits=Limits()):
        """Runs `command`; returns (status, stdout, stderr), each text cut. Status is None where the
        time was up, and - N where signal N ended it."""
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": errors}
            words, status = self.command(command, mounts, limits), None
            process = subprocess.Popen(words, start_new_session=True, cwd="/", **streams)
            try:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    status = process.wait(limits.wall_seconds())
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            texts = []
            for file in (output, errors):
                file.seek(0)
                texts.append(file.read(MOST_OUTPUT).decode("utf-8", "replace"))
        # bwrap and shells say 128 + N where signal N ended the command.
        return 128 - status if status and status > 128 else status, *texts
