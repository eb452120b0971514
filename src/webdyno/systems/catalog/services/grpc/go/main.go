// A server that greets by gRPC.
package main

//go:generate protoc --proto_path=../node --go_out=. --go_opt=module=webdyno.example/greeter --go-grpc_out=. --go-grpc_opt=module=webdyno.example/greeter greeter.proto

import (
	"context"
	"log"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"webdyno.example/greeter/greeterpb"
)

type greeter struct {
	greeterpb.UnimplementedGreeterServer
}

func (greeter) SayHello(_ context.Context, request *greeterpb.HelloRequest) (*greeterpb.HelloReply, error) {
	return &greeterpb.HelloReply{Message: "Hello " + request.GetName()}, nil
}

func main() {
	listener, err := net.Listen("tcp", net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT")))
	if err != nil {
		log.Fatal(err)
	}
	var options []grpc.ServerOption
	if certificate := os.Getenv("CERT"); certificate != "" {
		secure, err := credentials.NewServerTLSFromFile(certificate, os.Getenv("KEY"))
		if err != nil {
			log.Fatal(err)
		}
		options = append(options, grpc.Creds(secure))
	}
	server := grpc.NewServer(options...)
	greeterpb.RegisterGreeterServer(server, greeter{})
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	log.Fatal(server.Serve(listener))
}
