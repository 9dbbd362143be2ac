// Command go-quic serves requests by quic-go's HTTP/3, and by net/http on the TCP port of the same number.
package main

import (
	"flag"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"strconv"

	"github.com/quic-go/quic-go/http3"
	"lab.example/work"
)

func main() {
	port := flag.Int("port", 8000, "port on 127.0.0.1")
	workers := flag.Int("workers", 1, "threads that may run Go code at the same time")
	cert := flag.String("cert", "", "certificate; with it and a key TLS and QUIC are spoken")
	key := flag.String("key", "", "the certificate's key")
	flag.Parse()
	runtime.GOMAXPROCS(*workers)

	data, err := work.NewData()
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "Welcome!\n")
	})
	mux.HandleFunc("POST /upload", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, strconv.FormatInt(n, 10))
	})
	mux.HandleFunc("GET /transfer-data", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(data.JSONArray)))
		_, _ = w.Write(data.JSONArray)
	})
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(*port))
	if *cert == "" {
		log.Fatal(http.ListenAndServe(address, mux))
	}
	go func() { log.Fatal(http3.ListenAndServeQUIC(address, *cert, *key, mux)) }()
	log.Fatal(http.ListenAndServeTLS(address, *cert, *key, mux))
}
