// Command one-piece is the service of ../app.py and ../classifier.pyx in Go, with the standard library alone.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	names        = 4 // in Redis: name:0 to name:3
	nameBytesMax = 64
	lookUps      = 8 // goroutines that look names up, each with a connection of its own
	classifiers  = 4 // goroutines that take texts from the channel
	timeout      = time.Second
	every        = 20 * time.Millisecond
)

var errMissing = errors.New("a name is missing in Redis")

// --- one name in Redis ---

type connection struct {
	address string
	conn    net.Conn
	reader  *bufio.Reader
}

// getName does GET name:NUMBER; what is left of a connection that has failed is not used again.
func (c *connection) getName(number int) (string, error) {
	isKept := c.conn != nil
	name, err := c.ask(number)
	for err != nil && err != errMissing {
		if c.conn != nil {
			c.conn.Close()
			c.conn = nil
		}
		if !isKept || os.IsTimeout(err) {
			break
		}
		isKept = false // Redis may have ended it while it was idle: once more, on another one
		name, err = c.ask(number)
	}
	return name, err
}

func (c *connection) ask(number int) (string, error) {
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.address, timeout)
		if err != nil {
			return "", err
		}
		c.conn, c.reader = conn, bufio.NewReader(conn)
	}
	c.conn.SetDeadline(time.Now().Add(timeout))
	if _, err := fmt.Fprintf(c.conn, "*2\r\n$3\r\nGET\r\n$6\r\nname:%d\r\n", number); err != nil {
		return "", err
	}
	line, err := c.reader.ReadString('\n')
	if err != nil {
		return "", err
	}
	size, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "$")))
	if err != nil || size >= nameBytesMax {
		return "", fmt.Errorf("Redis says %q", line)
	}
	if size < 0 {
		return "", errMissing
	}
	name := make([]byte, size+2)
	_, err = io.ReadFull(c.reader, name)
	return string(name[:size]), err
}

// --- one name and one text: the article's work ---

func isClose(char byte, name string) bool {
	for i := 0; i < len(name); i++ {
		if distance := int(char) - int(name[i]); -1 <= distance && distance <= 1 {
			return true
		}
	}
	return false
}

func countClose(text, name string) (count int) {
	for i := 0; i < len(text); i++ {
		if isClose(text[i], name) {
			count++
		}
	}
	return count
}

// --- the goroutines that look up ---

type answer struct {
	number int
	name   string
	count  int
	err    error
}

type question struct {
	text    string
	number  int
	answers chan<- answer
}

func lookUp(questions <-chan question, address string) {
	redis := connection{address: address}
	for q := range questions {
		name, err := redis.getName(q.number)
		q.answers <- answer{q.number, name, countClose(q.text, name), err}
	}
}

// classifyText fans one text out: a question for each name, the answers in the order in which they come.
func classifyText(questions chan<- question, text string) (found [names]answer, err error) {
	answers := make(chan answer, names) // nothing waits in vain if the client leaves
	for number := range names {
		questions <- question{text, number, answers}
	}
	for range names {
		a := <-answers
		found[a.number] = a
		if a.err != nil {
			err = a.err
		}
	}
	return found, err
}

// --- the goroutines between the two channels ---

// progress is what the goroutines have done since the last event.
type progress struct {
	Texts  int        `json:"texts"`
	Failed int        `json:"failed"`
	Counts [names]int `json:"counts"`
	Total  int        `json:"total"`
}

func classifyTexts(questions chan<- question, texts <-chan string, counted chan<- progress) {
	for text := range texts {
		found, err := classifyText(questions, text)
		done := progress{Texts: 1, Total: len(text)}
		for number, a := range found {
			done.Counts[number] = a.count
		}
		if err != nil {
			done.Failed = 1
		}
		counted <- done
	}
}

// addUp sends the sums of every so often.
func addUp(counted <-chan progress, results chan<- progress) {
	for {
		sums := <-counted
		end := time.After(every)
	more:
		for {
			select {
			case one := <-counted:
				sums.Texts += one.Texts
				sums.Failed += one.Failed
				sums.Total += one.Total
				for number, count := range one.Counts {
					sums.Counts[number] += count
				}
			case <-end:
				break more
			}
		}
		results <- sums
	}
}

// --- the browsers ---

type broadcast struct {
	mutex     sync.Mutex
	followers map[chan []byte]bool
}

func (b *broadcast) follow(results <-chan progress) {
	for done := range results {
		b.send(done)
	}
}

func (b *broadcast) send(done progress) {
	data, _ := json.Marshal(done)
	event := fmt.Appendf(nil, "event: done\ndata: %s\n\n", data)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for follower := range b.followers {
		select {
		case follower <- event:
		default: // it reads too slowly: its stream ends
			close(follower)
			delete(b.followers, follower)
		}
	}
}

func (b *broadcast) serve(w http.ResponseWriter, r *http.Request) {
	events := make(chan []byte, 1024)
	b.mutex.Lock()
	b.followers[events] = true
	b.mutex.Unlock()
	defer func() {
		b.mutex.Lock()
		delete(b.followers, events)
		b.mutex.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.(http.Flusher).Flush()
	for {
		select {
		case event, ok := <-events:
			if !ok {
				return
			}
			if _, err := w.Write(event); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// --- the doors ---

// Service has the procedure Service.Submit.
type Service struct{ texts chan<- string }

func (s *Service) Submit(given []string, count *int) error {
	for _, text := range given {
		s.texts <- text
	}
	*count = len(given)
	return nil
}

func main() {
	address := flag.String("address", "127.0.0.1:8000", "HTTP")
	rpcAddress := flag.String("rpc", "127.0.0.1:9000", "JSON-RPC")
	redis := flag.String("redis", "127.0.0.1:6379", "Redis")
	page := flag.String("page", "../page.html", "the page")
	flag.Parse()

	questions := make(chan question)
	texts, counted, results := make(chan string, 64), make(chan progress, 64), make(chan progress, 1)
	for range lookUps {
		go lookUp(questions, *redis)
	}
	for range classifiers {
		go classifyTexts(questions, texts, counted)
	}
	go addUp(counted, results)
	browsers := &broadcast{followers: map[chan []byte]bool{}}
	go browsers.follow(results)

	http.HandleFunc("GET /classify/", func(w http.ResponseWriter, r *http.Request) {
		text := strings.TrimPrefix(r.URL.EscapedPath(), "/classify")
		found, err := classifyText(questions, text)
		if err == errMissing {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		for _, a := range found {
			fmt.Fprintf(w, "%s:\t%d\n", a.name, a.count)
		}
		fmt.Fprintf(w, "total:\t%d\n", len(text))
	})
	http.HandleFunc("POST /texts", func(w http.ResponseWriter, r *http.Request) {
		var given []string
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&given); err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		for _, text := range given {
			texts <- text
		}
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, len(given))
	})
	http.HandleFunc("POST /lines", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		count := 0
		for line := range strings.Lines(string(body)) {
			texts <- strings.TrimSuffix(line, "\n")
			count++
		}
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, count)
	})
	http.HandleFunc("GET /progress", browsers.serve)
	http.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, *page)
	})

	if err := rpc.Register(&Service{texts}); err != nil {
		log.Fatal(err)
	}
	calls, err := net.Listen("tcp", *rpcAddress)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for {
			conn, err := calls.Accept()
			if err != nil {
				log.Fatal(err)
			}
			go jsonrpc.ServeConn(conn)
		}
	}()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintf(os.Stderr, "serves on http://%s and rpc://%s\n", listener.Addr(), calls.Addr())
	log.Fatal(http.Serve(listener, nil))
}
