// Calls procedures by Go's net/rpc over ugorji's codec for MessagePack-RPC, which is not ours.
package main

import (
	"fmt"
	"log"
	"net"
	"net/rpc"
	"os"

	"github.com/ugorji/go/codec"
)

type user struct {
	ID   int    `codec:"id"`
	Name string `codec:"name"`
}

func main() {
	connection, err := net.Dial("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	handle := &codec.MsgpackHandle{WriteExt: true}
	handle.RawToString = true
	client := rpc.NewClientWithCodec(codec.MsgpackSpecRpc.ClientCodec(connection, handle))
	defer client.Close()

	var hello string
	call(client, "hello", &hello)
	var sum int
	call(client, "sum", &sum, 1, 2)
	var found user
	call(client, "users.get", &found, 7)
	fmt.Printf("%s\n%d\n%v\n", hello, sum, found)

	results := make([]int, 1000)
	done := make(chan *rpc.Call, len(results))
	for n := range results {
		client.Go("sum", codec.MsgpackSpecRpcMultiArgs{1, 0}, &results[n], done)
	}
	total := 0
	for range results {
		if finished := <-done; finished.Error != nil {
			log.Fatal(finished.Error)
		}
	}
	for _, result := range results {
		total += result
	}
	fmt.Printf("%d calls in flight: sum %d\n", len(results), total)
}

func call(client *rpc.Client, method string, result any, params ...any) {
	if err := client.Call(method, codec.MsgpackSpecRpcMultiArgs(params), result); err != nil {
		log.Fatalf("%s: %v", method, err)
	}
}
