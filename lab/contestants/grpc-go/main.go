// The service by grpc-go, registered as generated code does it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"runtime"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type echo struct{}

func unary(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	request := new(wrapperspb.StringValue)
	if err := decode(request); err != nil {
		return nil, err
	}
	return wrapperspb.String(request.Value), nil
}

func stream(_ any, stream grpc.ServerStream) error {
	request := new(wrapperspb.StringValue)
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	for range 100 {
		if err := stream.SendMsg(wrapperspb.String(request.Value)); err != nil {
			return err
		}
	}
	return nil
}

var service = grpc.ServiceDesc{
	ServiceName: "lab.Echo",
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "Unary", Handler: unary}},
	Streams:     []grpc.StreamDesc{{StreamName: "Stream", Handler: stream, ServerStreams: true}},
}

func main() {
	port := flag.Int("port", 8000, "where to listen")
	workers := flag.Int("workers", 1, "processors that Go code may use")
	flag.Parse()
	runtime.GOMAXPROCS(*workers)
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	server.RegisterService(&service, echo{})
	log.Fatal(server.Serve(listener))
}
