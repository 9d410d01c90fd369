// JSON is YAML, but for characters that YAML takes only when they are escaped, as broken texts hold them.

/** Control characters that JSON leaves as they are, line ends of YAML that are none of JSON, and no characters at all. */
const UNPRINTABLE = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

/** Of a configuration, for a program that reads YAML. */
export const yamlOf = (value: object): string =>
  JSON.stringify(value).replaceAll(
    UNPRINTABLE,
    (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
