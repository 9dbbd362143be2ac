// Command arena-fasthttp serves HttpArena's profiles with fasthttp, encoding/json and pgx.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/valyala/fasthttp"
)

type rating struct {
	Score int32 `json:"score"`
	Count int32 `json:"count"`
}

type item struct {
	ID       int32    `json:"id"`
	Name     string   `json:"name"`
	Category string   `json:"category"`
	Price    int32    `json:"price"`
	Quantity int32    `json:"quantity"`
	Active   bool     `json:"active"`
	Tags     []string `json:"tags"`
	Rating   rating   `json:"rating"`
}

type sold struct {
	item
	Total int64 `json:"total"`
}

type listing[T any] struct {
	Items []T `json:"items"`
	Count int `json:"count"`
}

type page struct {
	Items []item `json:"items"`
	Total int    `json:"total"`
	Page  int    `json:"page"`
	Limit int    `json:"limit"`
}

type values struct {
	ID       int32  `json:"id,omitempty"`
	Name     string `json:"name"`
	Category string `json:"category,omitempty"`
	Price    int32  `json:"price"`
	Quantity int32  `json:"quantity"`
}

const (
	columns    = "id, name, category, price, quantity, active, tags, rating_score, rating_count"
	between    = "SELECT " + columns + " FROM items WHERE price BETWEEN $1 AND $2 LIMIT $3"
	ofCategory = "SELECT " + columns + " FROM items WHERE category = $1 ORDER BY id LIMIT $2 OFFSET $3"
	one        = "SELECT " + columns + " FROM items WHERE id = $1"
	create     = "INSERT INTO items (" + columns + ") VALUES ($1, $2, $3, $4, $5, true, '[]', 0, 0) " +
		"ON CONFLICT (id) DO UPDATE SET name = $2, category = $3, price = $4, quantity = $5"
	update = "UPDATE items SET name = $2, price = $3, quantity = $4 WHERE id = $1"
	ttl    = 200 * time.Millisecond
)

var (
	items []item
	pool  *pgxpool.Pool
	// cached holds a cachedItem for each id that was read.
	cached sync.Map
)

type cachedItem struct {
	expires time.Time
	body    []byte
}

func main() {
	port := flag.Int("port", 8000, "port on 127.0.0.1")
	workers := flag.Int("workers", 1, "threads that may run Go code at the same time")
	flag.Parse()
	runtime.GOMAXPROCS(*workers)

	text, err := os.ReadFile(os.Getenv("DATASET_PATH"))
	if err == nil {
		err = json.Unmarshal(text, &items)
	}
	if err != nil {
		log.Fatal(err)
	}
	if url := os.Getenv("DATABASE_URL"); url != "" {
		config, err := pgxpool.ParseConfig(url)
		if err != nil {
			log.Fatal(err)
		}
		size, _ := strconv.Atoi(os.Getenv("DATABASE_MAX_CONN"))
		config.MaxConns = int32(max(1, size))
		if pool, err = pgxpool.NewWithConfig(context.Background(), config); err != nil {
			log.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(*port))
	if err != nil {
		log.Fatal(err)
	}
	server := fasthttp.Server{
		Handler: routes(), StreamRequestBody: true, MaxRequestBodySize: 32 << 20, NoDefaultServerHeader: true,
	}
	log.Fatal(server.Serve(listener))
}

func routes() fasthttp.RequestHandler {
	files := &fasthttp.FS{
		Root:           os.Getenv("STATIC_DIR"),
		PathRewrite:    fasthttp.NewPathSlashesStripper(1),
		Compress:       true,
		CompressBrotli: true,
		// The files that lie there compressed are taken as they are.
		CompressedFileSuffixes: map[string]string{"gzip": ".gz", "br": ".br"},
		SkipCache:              false,
	}
	static := files.NewRequestHandler()
	// Brotli at its best level by HttpArena's formula: lab/httparena/README.md.
	compressed := fasthttp.CompressHandlerBrotliLevel(list, 2, 4)
	return func(ctx *fasthttp.RequestCtx) {
		path := string(ctx.Path())
		switch {
		case path == "/baseline11" || path == "/baseline2":
			baseline(ctx)
		case path == "/pipeline":
			text(ctx, "ok")
		case strings.HasPrefix(path, "/delay/"):
			delay(ctx, strings.TrimPrefix(path, "/delay/"))
		case strings.HasPrefix(path, "/json/"):
			if len(ctx.Request.Header.Peek("Accept-Encoding")) > 0 {
				compressed(ctx)
			} else {
				list(ctx)
			}
		case path == "/upload":
			upload(ctx)
		case strings.HasPrefix(path, "/static/"):
			static(ctx)
		case path == "/async-db":
			asyncDB(ctx)
		case strings.HasPrefix(path, "/crud/items"):
			crud(ctx, strings.TrimPrefix(strings.TrimPrefix(path, "/crud/items"), "/"))
		default:
			ctx.Error("no such page", fasthttp.StatusNotFound)
		}
	}
}

func delay(ctx *fasthttp.RequestCtx, wanted string) {
	ms, err := strconv.Atoi(wanted)
	if err != nil {
		ctx.Error("no such page", fasthttp.StatusNotFound)
		return
	}
	time.Sleep(time.Duration(ms) * time.Millisecond)
	text(ctx, strconv.Itoa(ms))
}

func text(ctx *fasthttp.RequestCtx, body string) {
	ctx.SetContentType("text/plain")
	ctx.SetBodyString(body)
}

func answer(ctx *fasthttp.RequestCtx, value any, err error) {
	var body []byte
	if err == nil {
		body, err = json.Marshal(value)
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		ctx.Error("no such item", fasthttp.StatusNotFound)
	case err != nil:
		ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
	default:
		ctx.SetContentType("application/json")
		ctx.SetBody(body)
	}
}

func number(ctx *fasthttp.RequestCtx, name string) int {
	return ctx.QueryArgs().GetUintOrZero(name)
}

func baseline(ctx *fasthttp.RequestCtx) {
	sum := number(ctx, "a") + number(ctx, "b")
	if ctx.IsPost() {
		more, err := strconv.Atoi(strings.TrimSpace(string(ctx.PostBody())))
		if err != nil {
			ctx.Error(err.Error(), fasthttp.StatusBadRequest)
			return
		}
		sum += more
	}
	text(ctx, strconv.Itoa(sum))
}

func list(ctx *fasthttp.RequestCtx) {
	count, err := strconv.Atoi(strings.TrimPrefix(string(ctx.Path()), "/json/"))
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusBadRequest)
		return
	}
	count = min(max(count, 0), len(items))
	factor := int64(number(ctx, "m"))
	found := make([]sold, count)
	for i, one := range items[:count] {
		found[i] = sold{one, int64(one.Price) * int64(one.Quantity) * factor}
	}
	answer(ctx, listing[sold]{found, count}, nil)
}

func upload(ctx *fasthttp.RequestCtx) {
	buffer := make([]byte, 64<<10)
	total := 0
	for stream := ctx.RequestBodyStream(); stream != nil; {
		n, err := stream.Read(buffer)
		total += n
		if err != nil {
			break
		}
	}
	text(ctx, strconv.Itoa(total))
}

func scan(row pgx.CollectableRow) (item, error) {
	var i item
	err := row.Scan(&i.ID, &i.Name, &i.Category, &i.Price, &i.Quantity, &i.Active, &i.Tags,
		&i.Rating.Score, &i.Rating.Count)
	return i, err
}

func query(ctx *fasthttp.RequestCtx, sql string, arguments ...any) ([]item, error) {
	rows, err := pool.Query(ctx, sql, arguments...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

func within(limit int) int {
	return min(max(limit, 1), 50)
}

func asyncDB(ctx *fasthttp.RequestCtx) {
	found, err := query(ctx, between, number(ctx, "min"), number(ctx, "max"), within(number(ctx, "limit")))
	answer(ctx, listing[item]{found, len(found)}, err)
}

func crud(ctx *fasthttp.RequestCtx, path string) {
	id, _ := strconv.Atoi(path)
	switch {
	case ctx.IsPost():
		createItem(ctx)
	case ctx.IsPut():
		updateItem(ctx, int32(id))
	case path == "":
		number, limit := max(1, number(ctx, "page")), within(number(ctx, "limit"))
		category := string(ctx.QueryArgs().Peek("category"))
		found, err := query(ctx, ofCategory, category, limit, (number-1)*limit)
		answer(ctx, page{found, len(found), number, limit}, err)
	default:
		readItem(ctx, int32(id))
	}
}

func readItem(ctx *fasthttp.RequestCtx, id int32) {
	if known, ok := cached.Load(id); ok && time.Now().Before(known.(cachedItem).expires) {
		ctx.Response.Header.Set("X-Cache", "HIT")
		ctx.SetContentType("application/json")
		ctx.SetBody(known.(cachedItem).body)
		return
	}
	rows, err := pool.Query(ctx, one, id)
	var found item
	if err == nil {
		found, err = pgx.CollectExactlyOneRow(rows, scan)
	}
	answer(ctx, found, err)
	if err == nil {
		body := append([]byte(nil), ctx.Response.Body()...)
		cached.Store(id, cachedItem{time.Now().Add(ttl), body})
		ctx.Response.Header.Set("X-Cache", "MISS")
	}
}

func createItem(ctx *fasthttp.RequestCtx) {
	var given values
	err := json.Unmarshal(ctx.PostBody(), &given)
	if err == nil {
		_, err = pool.Exec(ctx, create, given.ID, given.Name, given.Category, given.Price, given.Quantity)
	}
	cached.Delete(given.ID)
	answer(ctx, given, err)
	if err == nil {
		ctx.SetStatusCode(fasthttp.StatusCreated)
	}
}

func updateItem(ctx *fasthttp.RequestCtx, id int32) {
	var given values
	err := json.Unmarshal(ctx.PostBody(), &given)
	if err == nil {
		done, failed := pool.Exec(ctx, update, id, given.Name, given.Price, given.Quantity)
		if err = failed; err == nil && done.RowsAffected() == 0 {
			err = pgx.ErrNoRows
		}
	}
	cached.Delete(id)
	answer(ctx, given, err)
}
