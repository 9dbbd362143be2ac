package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

func main() {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	base := os.Args[1]
	large := bytes.Repeat([]byte("go"), 1<<20)
	var wait sync.WaitGroup
	for range 50 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			answer, err := client.Post(base+"/echo", "application/octet-stream", bytes.NewReader(large))
			if err != nil {
				panic(err)
			}
			body, err := io.ReadAll(answer.Body)
			if err != nil || !bytes.Equal(body, large) || answer.ProtoMajor != 2 {
				panic(fmt.Sprint(answer.Proto, len(body), err))
			}
		}()
	}
	wait.Wait()
	// The response comes before the end of the request.
	early, err := client.Post(base+"/nowhere", "", bytes.NewReader(make([]byte, 100_000_000)))
	if err != nil {
		panic(err)
	}
	fmt.Println(early.StatusCode)
	answer, err := client.Get(base + "/pieces")
	if err != nil {
		panic(err)
	}
	body, err := io.ReadAll(answer.Body)
	fmt.Println(answer.Proto, len(body), err)
}
