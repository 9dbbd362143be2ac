// Command db-go-gorm serves the workload orm: fasthttp, GORM and its driver on pgx.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"net"
	"os"
	"runtime"
	"strconv"

	"github.com/valyala/fasthttp"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

type rating struct {
	Score int32 `json:"score"`
	Count int32 `json:"count"`
}

// Item is a row of the table items.
type Item struct {
	ID       int32    `json:"id"`
	Name     string   `json:"name"`
	Category string   `json:"category"`
	Price    int32    `json:"price"`
	Quantity int32    `json:"quantity"`
	Active   bool     `json:"active"`
	Tags     []string `json:"tags" gorm:"serializer:json"`
	Rating   rating   `json:"rating" gorm:"embedded;embeddedPrefix:rating_"`
}

type page struct {
	Items []Item `json:"items"`
	Count int    `json:"count"`
}

var db *gorm.DB

func main() {
	port := flag.Int("port", 8000, "port on 127.0.0.1")
	workers := flag.Int("workers", 1, "threads that may run Go code at the same time")
	flag.Parse()
	runtime.GOMAXPROCS(*workers)

	var err error
	// As its documentation advises for speed: prepared statements, no transaction around a single write.
	if db, err = gorm.Open(postgres.Open(os.Getenv("DATABASE_URL")), &gorm.Config{
		PrepareStmt:            true,
		SkipDefaultTransaction: true,
	}); err != nil {
		log.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		log.Fatal(err)
	}
	pool.SetMaxOpenConns(8)
	pool.SetMaxIdleConns(8)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(*port))
	log.Fatal(fasthttp.ListenAndServe(address, serve))
}

func serve(ctx *fasthttp.RequestCtx) {
	if string(ctx.Path()) != "/orm" {
		ctx.NotFound()
		return
	}
	if err := orm(ctx); err != nil {
		ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
	}
}

func orm(ctx *fasthttp.RequestCtx) error {
	args := ctx.QueryArgs()
	items := make([]Item, 0, 20)
	found := db.WithContext(ctx).
		Where("price BETWEEN ? AND ?", args.GetUintOrZero("min"), args.GetUintOrZero("max")).
		Limit(args.GetUintOrZero("limit")).
		Find(&items)
	if found.Error != nil {
		return found.Error
	}
	body, err := json.Marshal(&page{items, len(items)})
	ctx.SetContentType("application/json")
	ctx.SetBody(body)
	return err
}
