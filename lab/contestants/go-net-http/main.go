// Command go-net-http serves the contract with the standard library alone.
package main

import (
	"encoding/json"
	"flag"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"lab.example/work"
)

func main() {
	port := flag.Int("port", 8000, "port on 127.0.0.1")
	workers := flag.Int("workers", 1, "threads that may run Go code at the same time")
	cert := flag.String("cert", "", "certificate; with it and a key TLS is spoken")
	key := flag.String("key", "", "the certificate's key")
	flag.Parse()
	runtime.GOMAXPROCS(*workers)

	data, err := work.NewData()
	if err != nil {
		log.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(*port))
	server := &http.Server{Addr: address, Handler: routes(data), Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	if *cert != "" {
		log.Fatal(server.ListenAndServeTLS(*cert, *key))
	}
	log.Fatal(server.ListenAndServe())
}

func routes(data *work.Data) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		text(w, "Welcome!\n", nil)
	})
	mux.HandleFunc("GET /parse-msgpack", func(w http.ResponseWriter, r *http.Request) {
		count, err := data.ParseMsgpack(r.URL.Query().Get("texts") == "varied")
		text(w, count, err)
	})
	mux.HandleFunc("GET /encode-json", func(w http.ResponseWriter, _ *http.Request) {
		length, err := data.EncodeJSON()
		text(w, length, err)
	})
	mux.HandleFunc("GET /transfer-data", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(data.JSONArray)))
		_, _ = w.Write(data.JSONArray)
	})
	mux.HandleFunc("GET /million-loop", withSeed(work.MillionLoop))
	mux.HandleFunc("GET /async", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(2 * time.Millisecond)
		text(w, "OK", nil)
	})
	mux.HandleFunc("GET /fibonacci", func(w http.ResponseWriter, r *http.Request) {
		text(w, work.FibonacciAnswer(r.URL.Query().Get("first")), nil)
	})
	mux.HandleFunc("GET /greet/{name}", func(w http.ResponseWriter, r *http.Request) {
		times, err := strconv.Atoi(r.URL.Query().Get("times"))
		if err != nil || times < 0 {
			http.Error(w, "times is a number", http.StatusUnprocessableEntity)
			return
		}
		names := make([]string, times)
		for i := range names {
			names[i] = r.PathValue("name")
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string][]string{"hello": names})
	})
	mux.HandleFunc("GET /wait", func(w http.ResponseWriter, r *http.Request) {
		ms, err := strconv.Atoi(r.URL.Query().Get("ms"))
		if err != nil {
			http.Error(w, "ms is a number", http.StatusUnprocessableEntity)
			return
		}
		time.Sleep(time.Duration(ms) * time.Millisecond)
		text(w, "OK", nil)
	})
	mux.HandleFunc("GET /classify/", func(w http.ResponseWriter, r *http.Request) {
		text(w, work.Classify(r.URL.Path), nil)
	})
	mux.HandleFunc("GET /classify-channel/", func(w http.ResponseWriter, r *http.Request) {
		text(w, work.ClassifyByChannel(r.URL.Path), nil)
	})
	mux.HandleFunc("GET /fan-out", withSeed(work.FanOut))
	return mux
}

// withSeed makes a handler that answers what a function makes of the query's seed, which is 1 by default.
func withSeed(function func(int64) int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		seed := int64(1)
		if given := r.URL.Query().Get("seed"); given != "" {
			var err error
			if seed, err = strconv.ParseInt(given, 10, 64); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
		text(w, strconv.FormatInt(function(seed), 10), nil)
	}
}

func text(w http.ResponseWriter, body string, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, body)
}
