// The key of an engine. It leaves this object only for the header of a request: not by a log line, not by JSON.
export class ApiKey {
  readonly #key: string;

  constructor(key: string) {
    this.#key = key;
  }

  get authorization(): string {
    return `Bearer ${this.#key}`;
  }
}
