// Command calls-go serves profiles from another service: net/http on both sides.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
)

type profile struct {
	ID       int     `json:"id"`
	Name     string  `json:"name"`
	Email    string  `json:"email"`
	Street   string  `json:"street"`
	City     string  `json:"city"`
	IsActive bool    `json:"is_active"`
	Score    float64 `json:"score"`
}

func main() {
	port := flag.Int("port", 8000, "port on 127.0.0.1")
	workers := flag.Int("workers", 1, "threads that may run Go code at the same time")
	flag.Parse()
	runtime.GOMAXPROCS(*workers)

	client := &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 64,
		ForceAttemptHTTP2:   true,
	}}
	for path, name := range map[string]string{
		"/call/{id}":     "UPSTREAM_URL",
		"/call-tls/{id}": "UPSTREAM_TLS_URL",
		"/call-h2/{id}":  "UPSTREAM_H2_URL",
	} {
		http.HandleFunc("GET "+path, serve(client, os.Getenv(name)))
	}
	log.Fatal(http.ListenAndServe(net.JoinHostPort("127.0.0.1", strconv.Itoa(*port)), nil))
}

func serve(client *http.Client, base string) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		id, err := strconv.Atoi(request.PathValue("id"))
		if err != nil {
			http.Error(writer, "id: expected a number", http.StatusBadRequest)
			return
		}
		url := base + "/profiles/" + strconv.Itoa(id)
		call, err := http.NewRequestWithContext(request.Context(), http.MethodGet, url, nil)
		if err != nil {
			http.Error(writer, err.Error(), http.StatusInternalServerError)
			return
		}
		response, err := client.Do(call)
		if err != nil {
			http.Error(writer, err.Error(), http.StatusBadGateway)
			return
		}
		defer response.Body.Close()
		var found profile
		if err := json.NewDecoder(response.Body).Decode(&found); err != nil {
			http.Error(writer, err.Error(), http.StatusBadGateway)
			return
		}
		body, err := json.Marshal(&found)
		if err != nil {
			http.Error(writer, err.Error(), http.StatusInternalServerError)
			return
		}
		writer.Header().Set("Content-Type", "application/json")
		_, _ = writer.Write(body)
	}
}
