// Command go-fasthttp serves the contract with fasthttp and its router.
package main

import (
	"flag"
	"log"
	"net"
	"runtime"
	"strconv"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
	"lab.example/work"
)

func main() {
	port := flag.Int("port", 8000, "port on 127.0.0.1")
	workers := flag.Int("workers", 1, "threads that may run Go code at the same time")
	flag.Parse()
	runtime.GOMAXPROCS(*workers)

	data, err := work.NewData()
	if err != nil {
		log.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(*port))
	log.Fatal(fasthttp.ListenAndServe(address, routes(data)))
}

func routes(data *work.Data) fasthttp.RequestHandler {
	r := router.New()
	r.RedirectTrailingSlash = false
	r.GET("/", func(ctx *fasthttp.RequestCtx) {
		text(ctx, "Welcome!\n", nil)
	})
	r.GET("/parse-msgpack", func(ctx *fasthttp.RequestCtx) {
		count, err := data.ParseMsgpack(string(ctx.QueryArgs().Peek("texts")) == "varied")
		text(ctx, count, err)
	})
	r.GET("/encode-json", func(ctx *fasthttp.RequestCtx) {
		length, err := data.EncodeJSON()
		text(ctx, length, err)
	})
	r.GET("/transfer-data", func(ctx *fasthttp.RequestCtx) {
		ctx.SetContentType("application/json")
		ctx.SetBody(data.JSONArray)
	})
	r.GET("/million-loop", func(ctx *fasthttp.RequestCtx) {
		withSeed(ctx, work.MillionLoop)
	})
	r.GET("/async", func(ctx *fasthttp.RequestCtx) {
		time.Sleep(2 * time.Millisecond)
		text(ctx, "OK", nil)
	})
	r.GET("/fibonacci", func(ctx *fasthttp.RequestCtx) {
		text(ctx, work.FibonacciAnswer(string(ctx.QueryArgs().Peek("first"))), nil)
	})
	classify := func(ctx *fasthttp.RequestCtx) {
		text(ctx, work.Classify(string(ctx.Path())), nil)
	}
	r.GET("/classify/", classify)
	r.GET("/classify/{rest:*}", classify)
	classifyByChannel := func(ctx *fasthttp.RequestCtx) {
		text(ctx, work.ClassifyByChannel(string(ctx.Path())), nil)
	}
	r.GET("/classify-channel/", classifyByChannel)
	r.GET("/classify-channel/{rest:*}", classifyByChannel)
	r.GET("/fan-out", func(ctx *fasthttp.RequestCtx) {
		withSeed(ctx, work.FanOut)
	})
	return r.Handler
}

// withSeed answers what a function makes of the query's seed, which is 1 by default.
func withSeed(ctx *fasthttp.RequestCtx, function func(int64) int64) {
	seed := int64(1)
	if given := ctx.QueryArgs().Peek("seed"); len(given) > 0 {
		var err error
		if seed, err = strconv.ParseInt(string(given), 10, 64); err != nil {
			ctx.Error(err.Error(), fasthttp.StatusBadRequest)
			return
		}
	}
	text(ctx, strconv.FormatInt(function(seed), 10), nil)
}

func text(ctx *fasthttp.RequestCtx, body string, err error) {
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
		return
	}
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.SetBodyString(body)
}
