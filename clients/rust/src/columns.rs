//! The traces of a batch in either layout, as slices of what was received.
use crate::generated::polar::reconstructor::v1::{BatchColumns, TrajectoryBatch};

/// The columns of one trace: ids and logprobs of four bytes each, little-endian.
pub struct Columns<'a> {
    pub prompt_ids: &'a [u8],
    pub response_ids: &'a [u8],
    pub loss_mask: &'a [u8],
    #[allow(dead_code, reason = "what a trainer takes, and this program does not print")]
    pub logprobs: &'a [u8],
}

pub fn traces(batch: &TrajectoryBatch) -> Vec<Columns<'_>> {
    let own = batch.trajectories.iter().flat_map(|one| &one.traces).map(|trace| Columns {
        prompt_ids: &trace.prompt_ids,
        response_ids: &trace.response_ids,
        loss_mask: &trace.loss_mask,
        logprobs: &trace.logprobs,
    });
    own.chain(batch.columns.iter().flat_map(cut)).collect()
}

/// Those of a batch in columns, which hold them one after the other.
fn cut(all: &BatchColumns) -> impl Iterator<Item = Columns<'_>> {
    let prompts = places(&all.prompt_offsets);
    prompts.zip(places(&all.response_offsets)).map(|((prompt, prompt_end), (from, to))| Columns {
        prompt_ids: &all.prompt_ids[4 * prompt..4 * prompt_end],
        response_ids: &all.response_ids[4 * from..4 * to],
        loss_mask: &all.loss_mask[from..to],
        logprobs: &all.logprobs[4 * from..4 * to],
    })
}

/// Where each trace begins and ends: offsets are int32, little-endian, one more than there are traces.
fn places(offsets: &[u8]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let at = |four: &[u8]| u32::from_le_bytes([four[0], four[1], four[2], four[3]]) as usize;
    offsets.chunks_exact(4).zip(offsets.chunks_exact(4).skip(1)).map(move |(from, to)| (at(from), at(to)))
}
