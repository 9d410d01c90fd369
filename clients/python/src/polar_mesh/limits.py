"""Every limit of the client, in seconds. What happens at each is said beside it."""

#: One call with all its retries, where the caller gives no time; then DeadlineExceeded or Unavailable.
CALL_S = 30.0
#: One try of a call, whatever more its caller gives: gRPC takes no time without an end, and servers' timers keep 24 days. Then
#: DeadlineExceeded.
TRY_MAX_S = 1_000_000.0
#: Grading one session again, the wait for a place at its node included, where the caller gives no time; then DeadlineExceeded.
EVALUATE_S = 86_400.0
#: Making the connection of a stream over HTTP; then it is tried again.
CONNECT_S = 10.0
#: Trying to reach the server again after a stream broke; then Unavailable.
RECONNECT_S = 600.0
#: Silence on a stream, three of the server's progress messages, or of an export behind its first line; then it is taken as
#: broken and opened again.
STREAM_SILENCE_S = 35.0
#: The same where a silence may be a long message on its way, as gRPC does not tell: it doubles with each one, up to this.
STREAM_SILENCE_MAX_S = 600.0
#: Leases of sessions that are opened, as the mesh takes them; others are a ValueError before any call.
LEASE_MIN_S, LEASE_MAX_S = 1.0, 3600.0
#: Pause before the first retry; doubles with each one up to the next limit, with a random part.
RETRY_PAUSE_S = 0.1
#: Longest pause between two tries.
RETRY_PAUSE_MAX_S = 5.0
#: Sessions asked for in one page.
PAGE_SIZE = 1000
#: Token ids up to which the server puts small batches that are ready into one message of a stream.
MESSAGE_TOKENS = 262_144
#: A stream with a staleness bound hands a batch over by a policy version at most so old; it asks where that is older.
VERSION_AGE_S = 0.5
#: A call that a batch needs before it is handed over, or dropped, has so long at least, also where the wait for it is over:
#: who looks without waiting would never get it.
HAND_OVER_S = 1.0
#: Acknowledged batches up to the server's floor that a stream still knows, so that one that was sent again before it was
#: acknowledged is not given out twice; as many as the server keeps unacknowledged for one consumer.
ACKED_KEPT = 4_000
#: A trainer that waits for a batch for so long, while the mesh is not reached or it has not acknowledged as many as it may
#: hold, is told in the log.
HELD_WARN_S = 60.0
#: Between two words in the log of a bridge's groups that train nothing.
UNTRAINED_WARN_S = 60.0
