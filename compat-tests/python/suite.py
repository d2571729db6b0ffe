"""What the two Python suites share: a line a check, and waiting on conditions."""
import os
import subprocess
import sys
import threading
import time
import traceback

BOOTSTRAP = os.environ["BOOTSTRAP"]
# Every topic and group of this run begins with this.
RUN = os.environ["RUN"]
_failed = False


def check(feature, detail, body, *arguments, limit=60):
    """Runs the body in a thread of its own, so that one that hangs does not keep the others."""
    seen = []

    def run():
        try:
            body(*arguments)
            seen.append(None)
        except BaseException as error:
            seen.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(limit)
    error = seen[0] if seen else TimeoutError(f"not done after {limit} s")
    if error is None:
        print(f"PASS {feature} {detail}", flush=True)
        return
    global _failed
    _failed = True
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "compat-tests" in f.filename and "suite" not in f.filename]
    where = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else "?"
    text = f"{type(error).__name__}: {error}".replace("\n", "|")[:500]
    print(f"FAIL {feature} {detail}: {text} ({where})", flush=True)
    traceback.print_exception(error)


def skip(feature, reason):
    print(f"SKIP {feature} {reason}", flush=True)


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while True:
        seen = condition()
        if seen:
            return seen
        assert time.monotonic() < end, f"never came true, last {seen!r}"
        time.sleep(0.05)


def settle(look, seconds=10):
    """Repeats a look until what it expects is there: what was changed need not show at once."""
    end = time.monotonic() + seconds
    while True:
        try:
            return look()
        except AssertionError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def same(want, seen):
    assert want == seen, f"want {want!r}, seen {seen!r}"


def texts(count, first=0):
    return [f"record {i} of some text, of some text, of some text".encode()
            for i in range(first, first + count)]


def stored_as(topic, codec):
    """A client may fall back to none without a word, so the log is asked."""
    program = os.path.join(os.environ["PYTHONPATH"], "stored.py")
    ran = subprocess.run([sys.executable, program, BOOTSTRAP, topic],
                         capture_output=True, text=True, timeout=30)
    same(codec, ran.stdout.strip() or ran.stderr)


def finish():
    sys.stdout.flush()
    # Not sys.exit: a client that hangs in its own close must not keep us.
    os._exit(1 if _failed else 0)
