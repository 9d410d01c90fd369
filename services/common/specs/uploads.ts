// The files that a task uploads, read on the client's machine.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { UploadFileSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { textOf } from '../config/faults.ts';
import type { FieldFault } from '../errors.ts';
import { TASK_SPEC_BYTES_MAX, UPLOAD_FILES_MAX } from '../limits.ts';

type Upload = MessageInitShape<typeof UploadFileSchema>;

/** Reads up to TASK_SPEC_BYTES_MAX; what cannot be read, or is too much, is a fault of the step that names it. */
export class Uploads {
  readonly faults: FieldFault[] = [];
  readonly #base: string;
  #bytes = 0;

  constructor(base: string) {
    this.#base = base;
  }

  file(source: string, field: string): Upload | undefined {
    return this.#orFault(field, () => this.#read(resolve(this.#base, source)));
  }

  /** Of a file in UTF-8. */
  text(source: string, field: string): string | undefined {
    return this.#orFault(field, () => textOf(this.#read(resolve(this.#base, source)).content));
  }

  /** All regular files below a folder. Links are refused: one would upload what lies outside. */
  folder(source: string, field: string): Upload[] | undefined {
    const folder = resolve(this.#base, source);
    return this.#orFault(field, () => {
      const files = readdirSync(folder, { withFileTypes: true, recursive: true })
        .filter((entry) => !entry.isDirectory())
        .map((entry) => {
          const path = join(entry.parentPath, entry.name);
          if (!entry.isFile()) throw new Error(`${path} is neither a file nor a folder`);
          return path;
        })
        .sort();
      if (files.length > UPLOAD_FILES_MAX) {
        throw new Error(
          `${folder} has ${files.length} files, at most ${UPLOAD_FILES_MAX}: upload an archive`,
        );
      }
      return files.map((path) => ({ ...this.#read(path), target: relative(folder, path) }));
    });
  }

  #read(path: string): Upload & { readonly content: Uint8Array } {
    const stat = statSync(path);
    if (!stat.isFile()) throw new Error(`${path} is not a regular file`);
    this.#bytes += stat.size;
    if (this.#bytes > TASK_SPEC_BYTES_MAX) {
      throw new Error(`with ${path} the uploads are above ${TASK_SPEC_BYTES_MAX} bytes: upload less`);
    }
    return { content: readFileSync(path), mode: stat.mode & 0o777 };
  }

  #orFault<T>(field: string, read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      this.faults.push({ field, description: (error as Error).message });
      return undefined;
    }
  }
}
