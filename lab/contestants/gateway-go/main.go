// A gateway by the standard library.
package main

import (
	"flag"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"runtime"
	"strconv"
)

func main() {
	port := flag.Int("port", 8000, "the port to listen on")
	workers := flag.Int("workers", 1, "threads that run code")
	backend := flag.Int("backend", 0, "the port of the server behind")
	flag.Parse()
	runtime.GOMAXPROCS(*workers)
	target := &url.URL{Scheme: "http", Host: "127.0.0.1:" + strconv.Itoa(*backend)}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(target)
			request.SetXForwarded()
		},
		Transport:     &http.Transport{MaxIdleConnsPerHost: 512, DisableCompression: true},
		FlushInterval: -1,
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+strconv.Itoa(*port), proxy))
}
