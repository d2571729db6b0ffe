package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"time"
)

var (
	bootstrap = os.Getenv("BOOTSTRAP")
	// Every topic and group of this run begins with this.
	run    = os.Getenv("RUN")
	failed bool
)

// check runs the body with a time limit; what it panics with is what it found wrong.
func check(feature, detail string, body func(ctx context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), 45*time.Second)
	defer cancel()
	done := make(chan string, 1)
	go func() {
		defer func() {
			if wrong := recover(); wrong != nil {
				done <- fmt.Sprintf("%v%s", wrong, where())
				return
			}
			done <- ""
		}()
		body(ctx)
	}()
	wrong := ""
	select {
	case wrong = <-done:
	case <-time.After(50 * time.Second):
		wrong = "not done after 50 s"
	}
	if wrong == "" {
		fmt.Printf("PASS %s %s\n", feature, detail)
		return
	}
	failed = true
	wrong = strings.ReplaceAll(wrong, "\n", "|")
	fmt.Printf("FAIL %s %s: %.500s\n", feature, detail, wrong)
}

// where names the line of main.go that was wrong.
func where() string {
	callers := make([]uintptr, 40)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.File, "/main.go") && !strings.HasSuffix(frame.File, "runtime/main.go") {
			return fmt.Sprintf(" (main.go:%d)", frame.Line)
		}
		if !more {
			return ""
		}
	}
}

func skip(feature, reason string) { fmt.Printf("SKIP %s %s\n", feature, reason) }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func must1[T any](value T, err error) T {
	must(err)
	return value
}

func same(want, seen any) {
	if !reflect.DeepEqual(want, seen) {
		panic(fmt.Sprintf("want %v, seen %v", want, seen))
	}
}

func require(holds bool, seen any) {
	if !holds {
		panic(fmt.Sprintf("seen: %v", seen))
	}
}

// until waits for a condition rather than for a time.
func until(limit time.Duration, condition func() bool) {
	end := time.Now().Add(limit)
	for !condition() {
		if time.Now().After(end) {
			panic("never came true")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// settle repeats a look until what it expects is there: what was changed need not show at once.
func settle(look func()) {
	end := time.Now().Add(10 * time.Second)
	try := func() (wrong any) {
		defer func() { wrong = recover() }()
		look()
		return nil
	}
	for {
		wrong := try()
		if wrong == nil {
			return
		}
		if time.Now().After(end) {
			panic(wrong)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
