import { FormData } from "undici";

/** The file of a form. */
interface FormFile {
  /** It is sent as `application/octet-stream` where this is no media type. */
  readonly mediaType: string;
  readonly fileName: string;
  readonly bytes: Uint8Array;
}

/** Makes a multipart/form-data body: the defined text fields in order, then the part `file`. */
export function toForm(
  fields: Readonly<Record<string, string | undefined>>,
  { bytes, fileName, mediaType }: FormFile,
): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) form.append(name, value);
  const type = /^[\w.+-]+\/[\w.+-]+(?:;[\w=. "-]+)?$/.test(mediaType)
    ? mediaType
    : "application/octet-stream";
  form.append("file", new File([bytes as Uint8Array<ArrayBuffer>], fileName, { type }));
  return form;
}
