// A trainer's reader in Go: streams the batches of one consumer, prints what is in each, acknowledges it.
//
//	go generate && go run . http://127.0.0.1:8070 my-consumer [BATCHES]
//
// Ends after BATCHES of them; without that number it runs until it is stopped.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"

	"connectrpc.com/connect"

	pb "polar-mesh/reader/gen/polar/reconstructor/v1"
	"polar-mesh/reader/gen/polar/reconstructor/v1/reconstructorv1connect"
)

//go:generate buf generate

// A batch holds a whole group: hundreds of megabytes where its traces are long.
const messageBytesMax = 2 << 30

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: reader URL CONSUMER [BATCHES]")
	}
	batches := -1
	if len(os.Args) > 3 {
		var err error
		if batches, err = strconv.Atoi(os.Args[3]); err != nil {
			log.Fatal(err)
		}
	}
	if err := read(context.Background(), os.Args[1], os.Args[2], batches); err != nil {
		log.Fatal(err)
	}
}

func read(ctx context.Context, url, consumer string, batches int) error {
	http2, err := overHTTP2()
	if err != nil {
		return err
	}
	client := reconstructorv1connect.NewTrajectoryServiceClient(
		http2, url, connect.WithGRPC(), connect.WithReadMaxBytes(messageBytesMax))
	ctx, call := connect.NewClientContext(ctx)
	if token := os.Getenv("POLAR_TOKEN"); token != "" {
		call.RequestHeader().Set("authorization", "Bearer "+token)
	}
	stream, err := client.StreamTrajectories(ctx, &pb.StreamTrajectoriesRequest{Consumer: consumer})
	if err != nil {
		return err
	}
	defer stream.Close()
	for batches != 0 && stream.Receive() {
		batch := stream.Msg().GetBatch()
		if batch == nil {
			continue // Progress: the server is alive and has nothing new.
		}
		fmt.Println(describe(batch))
		// Here a trainer runs its step; only then does it acknowledge.
		seeks := stream.Msg().GetSeeks()
		ack := &pb.AckTrajectoriesRequest{Consumer: consumer, BatchIds: []uint64{batch.BatchId}, Seeks: &seeks}
		if _, err := client.AckTrajectories(ctx, ack); err != nil {
			return err
		}
		batches--
	}
	return stream.Err()
}

func describe(batch *pb.TrajectoryBatch) string {
	traces, ids, trained := 0, 0, 0
	for _, trajectory := range batch.Trajectories {
		traces += len(trajectory.Traces)
		for _, trace := range trajectory.Traces {
			ids += (len(trace.PromptIds) + len(trace.ResponseIds)) / 4
			for _, mask := range trace.LossMask {
				trained += int(mask)
			}
		}
	}
	return fmt.Sprintf("batch %d: task %s, group %s, %d sessions, %d traces, %d ids, %d trained, redelivered %t",
		batch.BatchId, batch.TaskId, batch.GroupId, len(batch.Trajectories), traces, ids, trained, batch.Redelivered)
}
