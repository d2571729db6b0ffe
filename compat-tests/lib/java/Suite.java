import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** What the Java suites share: a line a check, a time limit for each, and waiting on conditions. */
final class Suite {
    static final String BOOTSTRAP = System.getenv("BOOTSTRAP");
    /** Every topic and group of this run begins with this. */
    static final String RUN = System.getenv("RUN");

    interface Body {
        void run() throws Exception;
    }

    private static final ExecutorService THREAD = Executors.newCachedThreadPool(work -> {
        Thread thread = new Thread(work, "check");
        thread.setDaemon(true);
        return thread;
    });
    // A tool under test may replace System.out.
    private static final java.io.PrintStream OUT = System.out;
    private static boolean failed;

    static void client(String name, String version) {
        OUT.println("client " + name + " " + version);
    }

    static void check(String feature, String detail, Body body) {
        Future<?> run = THREAD.submit(() -> {
            body.run();
            return null;
        });
        try {
            run.get(40, TimeUnit.SECONDS);
            OUT.println("PASS " + feature + " " + detail);
        } catch (ExecutionException wrong) {
            fail(feature, detail, wrong.getCause());
        } catch (Exception late) {
            run.cancel(true);
            fail(feature, detail, late);
        }
        OUT.flush();
    }

    private static void fail(String feature, String detail, Throwable why) {
        failed = true;
        StackTraceElement at = Arrays.stream(why.getStackTrace())
            .filter(frame -> List.of("Tools.java", "Client.java").contains(String.valueOf(frame.getFileName())))
            .findFirst().orElse(null);
        String text = String.valueOf(why).replace('\n', '|');
        OUT.println("FAIL " + feature + " " + detail + ": "
            + text.substring(0, Math.min(text.length(), 500)) + " (" + at + ")");
    }

    static void skip(String feature, String reason) {
        OUT.println("SKIP " + feature + " " + reason);
    }

    static void require(boolean holds, Object seen) {
        if (!holds) throw new AssertionError("seen: " + seen);
    }

    static void same(Object want, Object seen) {
        if (!want.equals(seen)) throw new AssertionError("want " + want + ", seen " + seen);
    }

    /** Waits for a condition rather than for a time. */
    static void until(Duration limit, Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + limit.toNanos();
        while (!condition.call()) {
            if (System.nanoTime() > end) throw new AssertionError("never came true");
            Thread.sleep(50);
        }
    }

    /** Repeats a look until what it expects is there: what was changed need not show at once. */
    static void settle(Body look) throws Exception {
        long end = System.nanoTime() + Duration.ofSeconds(10).toNanos();
        while (true) {
            try {
                look.run();
                return;
            } catch (AssertionError notYet) {
                if (System.nanoTime() > end) throw notYet;
                Thread.sleep(50);
            }
        }
    }

    /** Not System.exit's own business: a client that hangs in close must not keep us. */
    static void finish() {
        OUT.flush();
        Runtime.getRuntime().halt(failed ? 1 : 0);
    }
}
