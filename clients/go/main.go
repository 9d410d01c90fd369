// A trainer's reader in Go: streams the batches of one consumer, prints what is in each, acknowledges it.
//
//	go generate && go run . http://127.0.0.1:8070 my-consumer [BATCHES [columns]]
//
// Ends after BATCHES of them; without that number it runs until it is stopped. With `columns` each column of a batch is one array.
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
		log.Fatal("usage: reader URL CONSUMER [BATCHES [columns]]")
	}
	request := &pb.StreamTrajectoriesRequest{Consumer: os.Args[2], Layout: pb.Layout_LAYOUT_TRACES}
	if len(os.Args) > 4 && os.Args[4] == "columns" {
		request.Layout = pb.Layout_LAYOUT_COLUMNS
	}
	batches := -1
	if len(os.Args) > 3 {
		var err error
		if batches, err = strconv.Atoi(os.Args[3]); err != nil {
			log.Fatal(err)
		}
	}
	if err := read(context.Background(), os.Args[1], request, batches); err != nil {
		log.Fatal(err)
	}
}

func read(ctx context.Context, url string, request *pb.StreamTrajectoriesRequest, batches int) error {
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
	stream, err := client.StreamTrajectories(ctx, request)
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
		ack := &pb.AckTrajectoriesRequest{Consumer: request.Consumer, BatchIds: []uint64{batch.BatchId}, Seeks: &seeks}
		if _, err := client.AckTrajectories(ctx, ack); err != nil {
			return err
		}
		batches--
	}
	return stream.Err()
}

func describe(batch *pb.TrajectoryBatch) string {
	// One of the two is empty, by the layout that was asked for.
	sessions, traces := len(batch.Trajectories)+len(batch.Columns.GetOutcomes()), inColumns(batch.Columns)
	for _, trajectory := range batch.Trajectories {
		traces = append(traces, trajectory.Traces...)
	}
	ids, trained := 0, 0
	for _, trace := range traces {
		ids += (len(trace.PromptIds) + len(trace.ResponseIds)) / 4
		for _, mask := range trace.LossMask {
			trained += int(mask)
		}
	}
	return fmt.Sprintf("batch %d: task %s, group %s, %d sessions, %d traces, %d ids, %d trained, redelivered %t",
		batch.BatchId, batch.TaskId, batch.GroupId, sessions, len(traces), ids, trained, batch.Redelivered)
}
