// The key of an engine. It leaves this object only for the header of a request: not by a log line, not by JSON.
export class ApiKey {
  readonly #key: string;

  constructor(key: string) {
    this.#key = key;
  }

  get authorization(): string {
    return `Bearer ${this.#key}`;
  }

  /** What an engine says, for those who may not know the key. APIs that refuse one repeat parts of it. */
  without(status: number, message: string): string {
    if (status === 401 || status === 403) return 'it refuses its key';
    return message.replaceAll(this.#key, '…');
  }
}
