// A builder plug-in for tests: the trace that ends with the last trained call, everything else masked.
export const builder = {
  build(calls, { reason = 'earlier' }) {
    const byId = new Map(calls.map((call) => [call.callId, call]));
    const line = [];
    for (
      let call = calls.findLast(({ mask }) => mask.includes(1));
      call !== undefined;
      call = byId.get(call.extends)
    )
      line.unshift(call.callId);
    const masks = calls
      .filter(({ callId }) => !line.includes(callId))
      .map(({ callId }) => ({ call: callId, reason }));
    return { traces: line.length > 0 ? [{ calls: line }] : [], masks };
  },
};
