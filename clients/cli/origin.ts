// Whether an error is what a mesh said, or what became of a call to somebody else, or to nobody.
import { Code, ConnectError } from '@connectrpc/connect';
import { ErrorInfoSchema } from '../../gen/ts/google/rpc/error_details_pb.js';

/** A mesh gives its errors a reason, but where a message is too large to be looked at. */
export const isOfMesh = ({ cause }: { readonly cause?: unknown }): boolean =>
  !(cause instanceof ConnectError) ||
  cause.code === Code.ResourceExhausted ||
  cause.findDetails(ErrorInfoSchema).length > 0;
