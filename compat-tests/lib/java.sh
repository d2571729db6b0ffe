# For the Java suites; sourced after suite.sh. The jars come from Maven by the suite's pom.xml.
# shellcheck shell=bash

# java_main MAIN: resolves the jars once for each pom, compiles, and runs the main class.
java_main() {
    local stamp jars
    stamp=$(sha256sum "$suite_dir/pom.xml" | cut -c1-12)
    jars=$build/jars-$stamp
    if [ ! -f "$jars/complete" ]; then
        rm -rf "$jars"
        mvn -q -B -f "$suite_dir/pom.xml" dependency:copy-dependencies \
            -DoutputDirectory="$jars" -DincludeScope=runtime >"$build/mvn.log" 2>&1 \
            || { cat "$build/mvn.log" >&2; return 1; }
        touch "$jars/complete"
    fi
    javac -nowarn -Xlint:-options -d "$work/classes" -cp "$jars/*" \
        "$root/compat-tests/lib/java/Suite.java" "$suite_dir/$1.java" || return 1
    # Heap and compiler are kept small: the suites run beside a broker on few cores.
    timeout 240 java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
        -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
        -Dlog4j2.configurationFile="$root/compat-tests/lib/java/log4j2.xml" \
        -cp "$work/classes:$jars/*" "$1"
}
