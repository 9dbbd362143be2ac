// What bench.c does, in Go: NAME COUNT prints nanoseconds per operation, and for "parked" bytes per goroutine.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

func resident() int {
	text, _ := os.ReadFile("/proc/self/smaps_rollup")
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "Rss:") {
			kb, _ := strconv.Atoi(strings.Fields(line)[1])
			return kb * 1024
		}
	}
	return 0
}

func pingPong(count int) float64 {
	there, back := make(chan int64), make(chan int64)
	go func() {
		for value := range there {
			back <- value
		}
	}()
	began := time.Now()
	for at := 0; at < count; at++ {
		there <- int64(at)
		<-back
	}
	return float64(time.Since(began).Nanoseconds()) / float64(count)
}

func selectFour(count int) float64 {
	var chans [4]chan int64
	for at := range chans {
		chans[at] = make(chan int64)
		go func(to chan int64) {
			for n := 0; n < count/4; n++ {
				to <- int64(n)
			}
		}(chans[at])
	}
	began := time.Now()
	for at := 0; at < count/4*4; at++ {
		select {
		case <-chans[0]:
		case <-chans[1]:
		case <-chans[2]:
		case <-chans[3]:
		}
	}
	return float64(time.Since(began).Nanoseconds()) / float64(count/4*4)
}

func startEnd(count int) float64 {
	var group sync.WaitGroup
	began := time.Now()
	for batch := 0; batch < count/100; batch++ {
		group.Add(100)
		for at := 0; at < 100; at++ {
			go group.Done()
		}
		group.Wait()
	}
	return float64(time.Since(began).Nanoseconds()) / float64(count/100*100)
}

func parked(count int) float64 {
	gate := make(chan int64)
	before := resident()
	var ready sync.WaitGroup
	ready.Add(count)
	for at := 0; at < count; at++ {
		go func() {
			ready.Done()
			<-gate
		}()
	}
	ready.Wait()
	time.Sleep(10 * time.Millisecond)
	return float64(resident()-before) / float64(count)
}

func main() {
	count, _ := strconv.Atoi(os.Args[2])
	run := map[string]func(int) float64{
		"ping_pong": pingPong, "select_four": selectFour, "start_end": startEnd, "parked": parked,
	}[os.Args[1]]
	fmt.Println(run(count))
}
