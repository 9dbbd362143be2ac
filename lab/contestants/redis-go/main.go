// Command redis-go serves a record from Redis: fasthttp and go-redis.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"log"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"
	"lab.example/work"
)

var client *redis.Client

func main() {
	port := flag.Int("port", 8000, "port on 127.0.0.1")
	workers := flag.Int("workers", 1, "threads that may run Go code at the same time")
	flag.Parse()
	runtime.GOMAXPROCS(*workers)

	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	client = redis.NewClient(options)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(*port))
	log.Fatal(fasthttp.ListenAndServe(address, serve))
}

func serve(ctx *fasthttp.RequestCtx) {
	id, found := strings.CutPrefix(string(ctx.Path()), "/cached/")
	if !found {
		ctx.NotFound()
		return
	}
	body, err := cached(ctx, id)
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
		return
	}
	ctx.SetContentType("application/json")
	ctx.SetBody(body)
}

func cached(ctx *fasthttp.RequestCtx, id string) ([]byte, error) {
	if _, err := strconv.Atoi(id); err != nil {
		return nil, err
	}
	packed, err := client.Get(ctx, "record:"+id).Bytes()
	if errors.Is(err, redis.Nil) {
		return []byte("null"), nil
	}
	if err != nil {
		return nil, err
	}
	var record work.Record
	if _, err := record.UnmarshalMsg(packed); err != nil {
		return nil, err
	}
	return json.Marshal(&record)
}
