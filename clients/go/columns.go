package main

import (
	"encoding/binary"

	pb "polar-mesh/reader/gen/polar/reconstructor/v1"
)

// inColumns cuts the traces of a batch out of its columns, which hold them one after the other; nothing is copied.
func inColumns(columns *pb.BatchColumns) (traces []*pb.Trace) {
	for i := range len(columns.GetTrajectoryIndexes()) / 4 {
		from, to := place(columns.PromptOffsets, i)
		trace := &pb.Trace{PromptIds: columns.PromptIds[4*from : 4*to]}
		from, to = place(columns.ResponseOffsets, i)
		trace.ResponseIds, trace.Logprobs = columns.ResponseIds[4*from:4*to], columns.Logprobs[4*from:4*to]
		trace.LossMask = columns.LossMask[from:to]
		traces = append(traces, trace)
	}
	return traces
}

// place is where a trace's ids begin and end: offsets are int32, little-endian, one more than there are traces.
func place(offsets []byte, trace int) (from, to uint32) {
	return binary.LittleEndian.Uint32(offsets[4*trace:]), binary.LittleEndian.Uint32(offsets[4*trace+4:])
}
