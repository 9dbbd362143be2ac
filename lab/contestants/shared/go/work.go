// Package work holds the computations of the contract, the way one writes them in Go.
package work

import (
	"fmt"
	"strconv"
)

// MillionLoop returns the total of a million steps that start at seed.
func MillionLoop(seed int64) int64 {
	total := seed
	for i := int64(0); i < 1_000_000; i++ {
		total += i * 3
		if total&64 != 0 {
			total -= i
		}
	}
	return total
}

// Fibonacci returns the Fibonacci numbers up to limit, a new slice on every call; they begin with first, 1.
func Fibonacci(first, limit int) []int {
	var numbers []int
	for a, b := first, 1; a <= limit; a, b = b, a+b {
		numbers = append(numbers, a)
	}
	return numbers
}

// FibonacciAnswer returns OK if the sequence starts as it should. With a first number it returns the sum of the
// sequence that starts so: the lab asks for it with random numbers, as a proof that the list is built.
func FibonacciAnswer(first string) string {
	if start, err := strconv.Atoi(first); err == nil {
		sum := 0
		for _, number := range Fibonacci(start, 100_000_000) {
			sum += number
		}
		return strconv.Itoa(sum)
	}
	if Fibonacci(1, 100_000_000)[0] == 1 {
		return "OK"
	}
	return "?"
}

const (
	navytux = "navytux.spb.ru"
	nexedi  = "www.nexedi.com"
	lab     = "lab.nexedi.com"
	erp5    = "www.erp5.com"
)

// isClose tells whether char is within distance 1 of any byte of name.
func isClose(char byte, name string) bool {
	for i := 0; i < len(name); i++ {
		distance := int(char) - int(name[i])
		if -1 <= distance && distance <= 1 {
			return true
		}
	}
	return false
}

// Classifier counts, for each name, how many bytes were close to it.
type Classifier struct {
	navytux, nexedi, lab, erp5, total int
}

// NextByte counts one byte.
func (c *Classifier) NextByte(char byte) {
	if isClose(char, navytux) {
		c.navytux++
	}
	if isClose(char, nexedi) {
		c.nexedi++
	}
	if isClose(char, lab) {
		c.lab++
	}
	if isClose(char, erp5) {
		c.erp5++
	}
	c.total++
}

// Classify returns the five lines for a request path; what follows /classify counts.
func Classify(path string) string {
	c := &Classifier{}
	for i := len("/classify"); i < len(path); i++ {
		c.NextByte(path[i])
	}
	return c.lines()
}

func (c *Classifier) lines() string {
	return fmt.Sprintf("%s:\t%d\n%s:\t%d\n%s:\t%d\n%s:\t%d\ntotal:\t%d\n",
		navytux, c.navytux, nexedi, c.nexedi, lab, c.lab, erp5, c.erp5, c.total)
}

// ClassifyByChannel returns the same for what follows /classify-channel, counted by a goroutine that gets it byte by byte.
func ClassifyByChannel(path string) string {
	chars, counted := make(chan byte), make(chan *Classifier)
	go func() {
		c := &Classifier{}
		for char := range chars {
			c.NextByte(char)
		}
		counted <- c
	}()
	for i := len("/classify-channel"); i < len(path); i++ {
		chars <- path[i]
	}
	close(chars)
	return (<-counted).lines()
}

// FanOut returns the sum of ten squares, from seed on; a goroutine sends each.
func FanOut(seed int64) int64 {
	squares := make(chan int64)
	for i := range int64(10) {
		go func() { squares <- (seed + i) * (seed + i) }()
	}
	total := int64(0)
	for range 10 {
		total += <-squares
	}
	return total
}
