"""Runs a command that is not trusted: bubblewrap, and limits of the kernel.

It sees the system's programs and libraries, one directory as /course, and one as /out; it has no
network, no other process, no environment, and can write to nothing but what it was given to write.
"""

import os
import resource
import select
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

NOBODY = 65534


class SandboxError(Exception):
    """There is no sandbox to be had here; the text says why and what to do."""


@dataclass(frozen=True)
class Limits:
    seconds: int = 60  # of the processors' time, so that a busy machine gives the same grades
    bytes: int = 4 << 30  # of memory, a process
    processes: int = 128
    output: int = 16 << 20  # bytes, a file

    def wall_seconds(self):
        """For those that wait and do not work."""
        return 30 + 10 * self.seconds


class Sandbox:
    def __init__(self, trusted=False):
        """trusted: no bubblewrap, limits alone. For submissions that one would run by hand."""
        self.trusted = trusted
        if trusted:
            return
        if not shutil.which("bwrap"):
            raise SandboxError(
                "bubblewrap is not installed (apt-get install bubblewrap); without it submissions would "
                "run with your rights. TRUSTED=1 does that"
            )
        with_root = Path("/")
        done = subprocess.run(
            self._command(["true"], with_root, None, False, ()), capture_output=True, text=True, **self._user()
        )
        if done.returncode != 0:
            raise SandboxError(
                f"bubblewrap cannot make a sandbox here ({done.stderr.strip()}): are user namespaces "
                "allowed? TRUSTED=1 runs submissions with your rights, without one"
            )

    def _user(self):
        """Root's rights are not for submissions, and the kernel's limit of processes not for root."""
        if os.geteuid() != 0 or self.trusted:
            return {}
        return {"user": NOBODY, "group": NOBODY, "extra_groups": []}

    def own(self, directory):
        """Gives a directory and what is in it to the user that commands run as."""
        if self._user():
            for path in [directory, *directory.rglob("*")]:
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    @staticmethod
    def _command(command, course, out, writable, visible):
        words = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
        for name, value in (("PATH", "/usr/bin:/bin"), ("HOME", "/tmp"), ("LC_ALL", "C.UTF-8"),
                            ("OMP_WAIT_POLICY", "passive"), ("OMP_NUM_THREADS", "2")):  # fmt: skip
            words += ["--setenv", name, value]
        words += ["--ro-bind", "/usr", "/usr"]
        for name in ("bin", "lib", "lib32", "lib64", "sbin"):
            path = Path("/") / name
            if path.is_symlink():
                words += ["--symlink", os.readlink(path), str(path)]
            elif path.exists():
                words += ["--ro-bind", str(path), str(path)]
        words += ["--ro-bind-try", "/etc/alternatives", "/etc/alternatives"]
        words += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
        words += ["--proc", "/proc", "--dev", "/dev"]
        for path in visible:
            words += ["--ro-bind-try", str(path), str(path)]
        if writable:
            words += ["--tmpfs", "/tmp"]
        if str(course) != "/":
            words += ["--bind" if writable else "--ro-bind", str(course), "/course"]
            words += ["--chdir", "/course"]
        if out:
            words += ["--bind", str(out), "/out"]
        return [*words, "--remount-ro", "/", "--", *command]

    def run(self, command, course, out=None, writable=False, visible=(), limits=Limits()):
        """Runs `command` in `course`, which it may write to if `writable`; `out` it may always.

        Returns (status, stdout and stderr), each cut at limits.output. Status is None where the time
        was up. Paths in the command: /course and /out; without a sandbox they are put in.
        """
        if self.trusted:
            places = {"/course": str(course), "/out": str(out)}
            words = []
            for word in command:
                for inside, outside in places.items():
                    word = word.replace(inside, outside)
                words.append(word)
        else:
            words = self._command(command, course, out, writable, visible)

        def limit():
            os.setsid()  # so that all of it can be killed
            resource.setrlimit(resource.RLIMIT_AS, (limits.bytes, limits.bytes))
            # At the first of the two a signal tells why it ends.
            resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds + 5))
            resource.setrlimit(resource.RLIMIT_FSIZE, (limits.output, limits.output))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if not self.trusted:  # it would count all processes of the user
                resource.setrlimit(resource.RLIMIT_NPROC, (limits.processes, limits.processes))

        read, write = os.pipe()
        os.set_blocking(read, False)
        process = subprocess.Popen(
            words, cwd=str(course) if self.trusted else "/", stdin=subprocess.DEVNULL, stdout=write,
            stderr=subprocess.STDOUT, preexec_fn=limit, **self._user(),
        )  # fmt: skip
        os.close(write)
        return self._drain(process, read, limits)

    @staticmethod
    def _drain(process, read, limits):
        """Waits for the end, or for the limits, and keeps the beginning of what is printed."""
        kept, total, status = b"", 0, None
        end = time.monotonic() + limits.wall_seconds()
        with os.fdopen(read, "rb", buffering=0) as pipe:
            open_ = True
            while open_ and time.monotonic() < end and total <= limits.output:
                if select.select([pipe], [], [], min(0.2, max(end - time.monotonic(), 0)))[0]:
                    data = pipe.read(65536)
                    open_ = bool(data)
                    total += len(data or b"")
                    kept += (data or b"")[: max(65536 - len(kept), 0)]
                elif process.poll() is not None:
                    break
            try:
                if total <= limits.output:
                    status = process.wait(timeout=max(end - time.monotonic(), 0.01))
            except subprocess.TimeoutExpired:
                pass
            if status is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if total > limits.output:
            return -signal.SIGXFSZ, "it printed more than it may"
        # bwrap and shells say 128 + N where signal N ended the command.
        if status is not None and status > 128:
            status = 128 - status
        return status, kept.decode("utf-8", "replace")
