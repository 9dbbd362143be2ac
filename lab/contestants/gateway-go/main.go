// A gateway by the standard library.
package main

import (
	"flag"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime"
	"strconv"
)

func main() {
	port := flag.Int("port", 8000, "the port to listen on")
	workers := flag.Int("workers", 1, "threads that run code")
	flag.Parse()
	runtime.GOMAXPROCS(*workers)
	target, err := url.Parse(os.Getenv("ORIGIN_URL"))
	if err != nil {
		log.Fatal(err)
	}
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
