// A button copies the entry for a bibliography. Where a browser refuses, it selects the entry.
for (const button of document.querySelectorAll("#cite button")) {
  const entry = document.querySelector("#cite pre");
  button.hidden = false;
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(entry.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(entry);
      button.textContent = "Selected: copy it with Ctrl+C";
    }
  };
}
