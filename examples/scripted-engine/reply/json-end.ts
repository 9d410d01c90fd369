// Finds where a JSON object ends in text that comes in pieces.

export class JsonEnd {
  #depth = 0;
  #inString = false;
  #escaped = false;
  #ended = false;

  get ended(): boolean {
    return this.#ended;
  }

  /** The part of the piece that belongs to the object. */
  take(piece: string): string {
    for (let i = 0; i < piece.length; i++) {
      if (this.#ended) return piece.slice(0, i);
      this.#step(piece[i] as string);
    }
    return piece;
  }

  #step(char: string): void {
    if (this.#escaped) {
      this.#escaped = false;
    } else if (this.#inString) {
      if (char === '\\') this.#escaped = true;
      else if (char === '"') this.#inString = false;
    } else if (char === '"') {
      this.#inString = true;
    } else if (char === '{' || char === '[') {
      this.#depth++;
    } else if (char === '}' || char === ']') {
      this.#ended = --this.#depth === 0;
    }
  }
}
